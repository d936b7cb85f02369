"""Rates of our own commands, beside the work that they do and beside other tools."""
