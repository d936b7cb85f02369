"""Lakewright's boards in reasoning-gym: importing this registers the dataset `multi_agent_frozen_lake`."""

from reasoning_gym.factory import register_dataset

from reasoning_gym_lakewright.lake import LakeConfig, LakeCurriculum, LakeDataset

NAME = "multi_agent_frozen_lake"

register_dataset(NAME, LakeDataset, LakeConfig, LakeCurriculum)

__all__ = ["NAME", "LakeConfig", "LakeCurriculum", "LakeDataset"]
