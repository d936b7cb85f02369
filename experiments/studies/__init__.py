"""Studies: many runs from one warm-up under one budget, and their results."""
