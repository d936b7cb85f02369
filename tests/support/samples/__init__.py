"""Sample runs, sweeps, studies and evaluations, and the evidence in them."""
