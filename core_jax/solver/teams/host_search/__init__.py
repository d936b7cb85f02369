"""Labels of whole boards by a compiled search on the host; boards that it leaves open come back with their bounds."""
