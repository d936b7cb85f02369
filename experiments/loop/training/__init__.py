"""The policy of a run: its warm-up, and the problems, training and validation of each stage."""
