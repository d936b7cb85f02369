"""Servers and what speaks to them: chat completions, the viewer, and its browser."""
