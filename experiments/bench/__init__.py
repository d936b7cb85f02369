"""Benchmarks, run by `lakewright bench`."""
