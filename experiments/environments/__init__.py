"""Environments: the lake, and those of other projects."""
