"""Long checks and benchmarks of this repository: `python -m tests.campaigns COMMAND` in a clone of the repository."""
