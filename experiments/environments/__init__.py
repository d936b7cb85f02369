"""Environments: the lake, and other projects'."""
