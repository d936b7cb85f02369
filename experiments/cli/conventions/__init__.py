"""Conventions of all commands: shared options, settings on the line, and the form of help, results and errors."""
