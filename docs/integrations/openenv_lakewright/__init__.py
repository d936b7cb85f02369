"""Lakewright's boards in OpenEnv: a server, and the client that plays on it."""

from openenv_lakewright.client import LakeClient
from openenv_lakewright.models import LakeAction, LakeObservation, LakeState

__all__ = ["LakeAction", "LakeClient", "LakeObservation", "LakeState"]
