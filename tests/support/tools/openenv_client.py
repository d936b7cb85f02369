"""Run by the Python of an environment with OpenEnv: plays on a running server by our client, several at once.

python openenv_client.py URL GAMES, a JSON list of the joint moves of each board's certified plan.
"""

import json
import sys

from openenv.core import GenericEnvClient
from openenv_lakewright import LakeAction, LakeClient

url, games = sys.argv[1], json.loads(sys.argv[2])

with LakeClient(base_url=url).sync() as first, LakeClient(base_url=url).sync() as second:
    second.reset(board=1)
    for number, game in enumerate(games):
        begun = first.reset(board=number)
        assert not begun.done
        assert "a" in begun.observation.text, begun
        for moves in game:
            result = first.step(LakeAction(moves=moves))
        assert (result.done, result.reward) == (True, 1.0), result
        assert result.observation.text.endswith("The game is won."), result
        state = first.state()
        assert (state.step_count, state.board) == (len(game), number), state
    assert second.state().step_count == 0, "clients share an episode"

    assert first.reset(seed=5).observation == second.reset(seed=5).observation
    lost = second.step(LakeAction(moves=["UP", "UP"]))
    while not lost.done:
        lost = second.step(LakeAction(moves=["UP", "UP"]))
    assert lost.reward == 0, lost
    for moves in (["UP", "UP"], ["UP"]):
        refused = ""
        try:
            second.step(LakeAction(moves=moves))
        except RuntimeError as error:
            refused = str(error)
        assert "the game is over" in refused, f"a step after the end is not refused: {refused!r}"

with GenericEnvClient(base_url=url).sync() as plain:
    plain.reset(seed=1)
    refused = ""
    try:
        plain.step({"moves": ["UP", "SIDEWAYS"]})
    except RuntimeError as error:
        refused = str(error)
    assert "VALIDATION_ERROR" in refused, f"a move that is none is not refused: {refused!r}"
print("openenv plays")
