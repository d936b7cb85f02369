"""Boards as SVG: still, frame by frame, played, and moving by itself; and where a plan leads, step by step."""
