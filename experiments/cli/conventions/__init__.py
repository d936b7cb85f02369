"""What all commands have in common: shared options, settings on the line, how help, results and errors look."""
