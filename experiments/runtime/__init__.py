"""What a process sets up before it works: libraries, threads, progress bars."""
