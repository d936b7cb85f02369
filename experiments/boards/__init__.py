"""Boards of the lake: files of them, sweeps, the benchmark and its evaluation, and the lake in other people's tools."""
