"""What a run needs of a machine: its memory as arithmetic, and whether this machine has it before anything is spent."""
