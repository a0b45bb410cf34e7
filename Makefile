# The commands of run.py under their own names.
.PHONY: demo test rest all style docs
demo test rest all style docs:
	python3 run.py $@
