# The commands of run.py under their own names.
.PHONY: demo test rest all style
demo test rest all style:
	python3 run.py $@
