"""Agents one at a time: their distances to the goals, and the certificate that follows from shortest paths."""
