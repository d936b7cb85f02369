"""Everything that runs: the command line, the closed loop, the run folder, benchmarks and reports."""
