"""The client of a server."""

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult

from openenv_lakewright.models import LakeAction, LakeObservation, LakeState


class LakeClient(EnvClient[LakeAction, LakeObservation, LakeState]):
    """Plays on a server: `with LakeClient(base_url="http://localhost:8000").sync() as client: client.reset(seed=1)`."""

    def _step_payload(self, action: LakeAction) -> dict[str, Any]:
        return {"moves": action.moves}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[LakeObservation]:
        reward, done = payload.get("reward"), payload.get("done", False)
        observation = LakeObservation(**payload["observation"] | {"reward": reward, "done": done})
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> LakeState:
        return LakeState(**payload)
