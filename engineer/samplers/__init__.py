"""Instance-level samplers, one file each: which single boards a stage trains on."""
