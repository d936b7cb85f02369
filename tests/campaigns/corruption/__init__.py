"""The corruption campaign: one thing in one file that a command reads is damaged, and the command is run."""
