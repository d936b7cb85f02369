"""The answer of a language model, read as a plan: strict about its meaning, lenient about its form.

The answer is the last line that begins with `agent 0:` and what follows it: one line for each agent, in order, of moves
only. Case, commas, brackets, quotes, bullets, emphasis and code fences do not matter, and a move may be its letter.
Lines without an agent's name are ignored, as are thoughts of a model and drafts: a later `agent 0:` starts the plan
again. Nothing is guessed: an unclear answer is refused with the reason.
"""

import dataclasses
import enum
import re

import numpy as np

from lakewright.core_jax.support import read_answer_after_thoughts
from lakewright.core_jax.types import MOVES, PAD, WAIT
from lakewright.policy.codecs.text_prompt import MOVE_WORDS

MAX_STEPS = 1024  # of an answer; the longest optimal plan of the benchmark has far fewer
# Every quantifier that could give back is possessive or bounded, so that no text takes more than linear time.
_BREAKS = re.compile(r"\r\n|\r|\n")
_BULLET = r"(?:\W*+[0-9]{1,3}[.)])?+[\W_]*+"
_NAME = r"agent[\s_#-]{0,3}+([0-9]{1,6})(?:'s)?+[\s_*`\"]{0,4}+"
_REMARK = r"(?:\([^()]{0,40}\)\s{0,4}+)?+(?:(?:moves?|plan|path|actions?)\b)?+[\s_*`\"'\])]{0,6}+"
_LINE = re.compile(rf"{_BULLET}{_NAME}{_REMARK}[:=|]++(.*+)", re.IGNORECASE)
_ARROW = re.compile(r"(?<=\w)[ \t]{0,4}+(?:->|=>|→)[ \t]{0,4}+(?=\w)")  # between words only: alone it might be a move
_BETWEEN = re.compile(r"[\s,;|\[\](){}*_`'\"]++")
_WORDS = {word: move for move, word in MOVE_WORDS.items()} | {"STAY": WAIT}
_LETTERS = {letter: move for move, letter in enumerate(MOVES)}


class Refusal(enum.StrEnum):
    """The reason why an answer holds no plan."""

    EMPTY = "empty"
    UNFINISHED_THINKING = "unfinished_thinking"
    NO_PLAN = "no_plan"
    WRONG_AGENTS = "wrong_agents"
    NO_MOVES = "no_moves"
    UNKNOWN_MOVE = "unknown_move"
    TOO_LONG = "too_long"


@dataclasses.dataclass(frozen=True)
class Refused:
    """An answer without a plan: the reason, and the problem found, in one line."""

    reason: Refusal
    problem: str


def parse_answer(text: str, agents: int) -> np.ndarray | Refused:
    """Return the moves int8 [agents, T] that `text` names, padded with PAD, or why it is refused. Raises nothing.

    Only the form is judged; where the moves lead is the simulator's question.
    """
    answer = read_after_thinking(text)
    if isinstance(answer, Refused):
        return answer
    lines = _find_last_plan(answer)
    if [agent for agent, _ in lines] != list(range(agents)):
        return _refuse_agents(lines, agents)
    plan = []
    for agent, body in lines:
        own = _parse_moves(agent, body)
        if isinstance(own, Refused):
            return own
        plan.append(own)
    moves = np.full((agents, max(map(len, plan))), PAD, np.int8)
    for agent, own in enumerate(plan):
        moves[agent, : len(own)] = own
    return moves


def plan_text(moves: np.ndarray) -> str:
    """The answer, without a thought, that plays `moves`, int8 [K, T] padded with PAD."""
    return "\n".join(
        f"agent {agent}: {' '.join(MOVE_WORDS[move] for move in own[own != PAD].tolist()) or MOVE_WORDS[WAIT]}"
        for agent, own in enumerate(moves)
    )


def read_after_thinking(text: str) -> str | Refused:
    if not text.strip():
        return Refused(Refusal.EMPTY, "the answer is empty")
    said, cut = read_answer_after_thoughts(text)
    if cut:
        return Refused(Refusal.UNFINISHED_THINKING, f"{cut!r:.60} is never closed: the answer was cut off")
    return said if said.strip() else Refused(Refusal.EMPTY, "nothing follows the thought")


def _find_last_plan(text: str) -> list[tuple[int, str]]:
    """Return agent and moves of each line that names an agent, from the last that names agent 0."""
    found = [(int(line[1]), line[2]) for part in _BREAKS.split(text) if (line := _LINE.match(part))]
    begin = max((place for place, (agent, _) in enumerate(found) if agent == 0), default=0)
    return found[begin:]


def _refuse_agents(lines: list[tuple[int, str]], agents: int) -> Refused:
    if not lines:
        return Refused(Refusal.NO_PLAN, "no line begins with an agent's name and a colon, as in `agent 0: UP`")
    named = ", ".join(str(agent) for agent, _ in lines[: agents + 2])
    return Refused(Refusal.WRONG_AGENTS, f"lines for agents {named}; there must be one each for 0 to {agents - 1}")


def _parse_moves(agent: int, body: str) -> list[int] | Refused:
    body = _ARROW.sub(" ", body).strip().removesuffix(".")  # one full stop: several would leave something out
    moves: list[int] = []
    for word in filter(None, _BETWEEN.split(body)):
        name = word.upper()
        if name in _WORDS:
            moves.append(_WORDS[name])
        elif set(name) <= _LETTERS.keys():  # one letter, or letters in a row
            moves += [_LETTERS[letter] for letter in name]
        else:
            return Refused(Refusal.UNKNOWN_MOVE, f"agent {agent} has the move {word!r:.40}, which is not a move")
        if len(moves) > MAX_STEPS:
            return Refused(Refusal.TOO_LONG, f"agent {agent} has more than {MAX_STEPS} moves")
    return moves or Refused(Refusal.NO_MOVES, f"agent {agent} has no moves")
