"""The setup of a process: libraries, threads, progress bars."""
