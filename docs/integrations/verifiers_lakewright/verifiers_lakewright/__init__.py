"""Lakewright's boards in verifiers: `vf-eval verifiers-lakewright`."""

from verifiers_lakewright.taskset import LakeTaskset

__all__ = ["LakeTaskset"]
