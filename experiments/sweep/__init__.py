"""Sweeps: statistics of millions of boards over a grid of sizes, agents and ratios."""
