"""What goes over the wire: joint moves there, boards as text back."""

from typing import Literal

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class LakeAction(Action):
    """A joint move."""

    moves: list[Literal["UP", "DOWN", "LEFT", "RIGHT", "WAIT"]] = Field(
        ..., description="One move for each agent, in order"
    )


class LakeObservation(Observation):
    """The board after a move. reward: 1 with the move after which all agents are at their goals, else 0."""

    text: str = Field(..., description="The board, one line a row, and the outcome of the move")


class LakeState(State):
    """The episode."""

    board: int | None = Field(default=None, description="The number of the board that is played on")
