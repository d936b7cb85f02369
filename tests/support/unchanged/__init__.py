"""Recorded rounds of the lake, and what the engineer makes of them."""
