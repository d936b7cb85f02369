"""Boards, rows, and the independent oracles that judge them."""
