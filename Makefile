# The commands of run.py under their own names.
.PHONY: demo test rest all style docs minimums
demo test rest all style docs minimums:
	python3 run.py $@
