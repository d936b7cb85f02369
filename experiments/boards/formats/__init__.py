"""Boards and plans in the file formats of multi-agent path finding, and back."""
