"""What there is to look at: runs, studies, sweeps, evaluations, benchmarks and board files below some folders."""
