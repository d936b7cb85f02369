"""Two agents: joint floods backward from the goals, and optimal plans read out of them."""
