"""Commands and processes: started, watched, measured, cut off, and killed."""
