"""The needs of a run: its memory as arithmetic, and a check of this machine before anything is spent."""
