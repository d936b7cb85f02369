"""The server: the environment behind HTTP."""
