"""The catalogue of the viewer: runs, studies, sweeps, evaluations, benchmarks and board files below some folders."""
