"""What a machine may do to a process: cut the power, fill its disk, set its clock."""
