"""Teachers, one file each: from evidence to a proposed change of the config."""
