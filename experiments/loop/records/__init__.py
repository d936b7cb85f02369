"""The run folder: the files of a run, written and read."""
