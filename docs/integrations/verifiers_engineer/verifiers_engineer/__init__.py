"""Problems of an engineer's folder as a taskset of verifiers, and so of prime-rl."""

from verifiers_engineer.taskset import EngineerTaskset

__all__ = ["EngineerTaskset"]
