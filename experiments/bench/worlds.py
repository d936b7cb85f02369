"""Worlds: simulated learners on simulated tasks, in which the truth is known and a run takes less than a second.

In a world every stratum has an ability. A problem of level l is answered rightly with probability
logistic(slope (ability - step l - twist) + spread u), u being the problem's own. A group of answers with the share m of
right ones adds rate x signal(m) to the ability of its stratum, and a part of it to others. An engineer sees answers.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import apply_logistic

ANSWERS = 8  # to a problem
HELD_OUT = 240  # problems
NODES = np.array([-1.8, -1.1, -0.55, 0.0, 0.55, 1.1, 1.8])  # of u ~ N(0, 1), about evenly likely
LETTERS = "qamzkwpdxyuvbcefghijlnorst"


SIGNALS: dict[str, Callable[[float], float]] = {
    "plain": lambda m: 4 * m * (1 - m),
    "normed": lambda m: 2 * math.sqrt(m * (1 - m)),
    "guided": lambda m: (1 - m) * min(1.0, 4 * m + 0.2),
}
"""The signal of a group of answers, by advantages that are not divided, that are divided by their deviation, and if the
group holds a right answer."""


class Truth(NamedTuple):
    """The truth, which an engineer does not know.

    By stratum, float [S]: ability, rate, slope, weight of the held-out problems, lapse, the P(valid) that no ability
    goes beyond, fade, the ability lost in a round, and spread, in logits, by which problems of a cell differ.

    transfer: float [S, S], what training on a stratum (row) adds to the others. own: the ability for twists alone,
    float [S], or None if missing. apart: the share of learning without twists that does not help with them; above 1
    it harms. carried: the share of learning with twists that helps without them. broken: the strata whose grader finds
    no answer.
    """

    ability: np.ndarray
    rate: np.ndarray
    slope: np.ndarray
    weight: np.ndarray
    lapse: np.ndarray
    fade: np.ndarray
    spread: np.ndarray
    transfer: np.ndarray
    own: np.ndarray | None = None
    apart: float = 0.0
    carried: float = 0.3
    twist: float = 0.0
    step: float = 1.0
    levels: int = 8
    signal: str = "plain"
    ranked: bool = False
    broken: tuple[int, ...] = ()


def _make_truth(rng: np.random.Generator, strata: int = 6, **changes: Any) -> Truth:
    """Independent strata of abilities between 1 and 5. changes: fields that differ."""
    usual: dict[str, Any] = {
        "ability": rng.uniform(1.0, 5.0, strata),
        "rate": np.full(strata, 0.02),
        "slope": np.full(strata, 1.5),
        "weight": np.full(strata, 1 / strata),
        "lapse": np.ones(strata),
        "fade": np.zeros(strata),
        "spread": np.full(strata, 0.5),
        "transfer": np.eye(strata),
    }
    return Truth(**usual | changes)


def _make_lake(rng: np.random.Generator) -> Truth:
    """As the frozen lake after a warm-up with gaps: sizes in order, gentle levels, twists never seen on two of them."""
    return _make_truth(
        rng,
        4,
        ability=np.array([2.6, 2.0, 1.6, 1.0]) + rng.normal(0, 0.2, 4),
        rate=np.full(4, 0.008),
        own=np.where(np.arange(4) % 2, -2.0, 0.0),
        transfer=np.eye(4) + 0.4 * np.eye(4, k=1) + 0.4 * np.eye(4, k=-1),
        twist=0.6,
        step=0.25,
        levels=6,
        ranked=True,
    )


KINDS: dict[str, tuple[str, Callable[[np.random.Generator], Truth]]] = {
    "even": ("independent tasks", lambda rng: _make_truth(rng)),
    "gaps": (
        "half of the tasks known, half new",
        lambda rng: _make_truth(rng, ability=np.where(rng.permutation(6) < 3, 1.0, 6.0)),
    ),
    "ladder": (
        "tasks in order that help their neighbours",
        lambda rng: _make_truth(
            rng,
            ability=np.sort(rng.uniform(0.5, 6.0, 6))[::-1],
            transfer=np.eye(6) + 0.5 * np.eye(6, k=1) + 0.25 * np.eye(6, k=-1),
            ranked=True,
        ),
    ),
    "rates": ("learning rates differ 40-fold", lambda rng: _make_truth(rng, rate=0.002 * 10 ** rng.uniform(0, 1.6, 6))),
    "slopes": (
        "some tasks get hard at once, others slowly",
        lambda rng: _make_truth(rng, slope=rng.uniform(0.5, 3.0, 6)),
    ),
    "twists": (
        "a trait that makes problems harder",
        lambda rng: _make_truth(rng, ability=rng.uniform(2.0, 5.0, 6), twist=rng.uniform(1.5, 3.0)),
    ),
    "apart": (
        "what is learned without a trait does not help with it",
        lambda rng: _make_truth(
            rng, ability=rng.uniform(2.0, 5.0, 6), own=np.zeros(6), apart=1.0, twist=rng.uniform(1.0, 2.0)
        ),
    ),
    "torn": (
        "with a trait or without it, one is forgotten over the other",
        lambda rng: _make_truth(
            rng,
            ability=rng.uniform(2.0, 5.0, 6),
            own=np.zeros(6),
            apart=1.5,
            carried=-0.5,
            twist=rng.uniform(1.0, 2.0),
        ),
    ),
    "noisy": ("problems of a cell differ", lambda rng: _make_truth(rng, spread=np.full(6, 1.2))),
    "rote": (
        "half of the tasks have problems that are known by heart or not",
        lambda rng: _make_truth(rng, spread=np.where(rng.permutation(6) < 3, 6.0, 0.5)),
    ),
    "guided": ("a right answer in each group", lambda rng: _make_truth(rng, signal="guided")),
    "normed": ("advantages divided by their deviation", lambda rng: _make_truth(rng, signal="normed")),
    "stuck": (
        "two tasks out of reach",
        lambda rng: _make_truth(
            rng,
            ability=np.where(np.arange(6) < 2, -6.0, rng.uniform(1.0, 5.0, 6)),
            rate=np.where(np.arange(6) < 2, 1e-4, 0.02),
        ),
    ),
    "broken": ("a grader that finds no answer", lambda rng: _make_truth(rng, broken=(int(rng.integers(6)),))),
    "lapses": (
        "graders that refuse one right answer in four",
        lambda rng: _make_truth(rng, lapse=np.where(rng.permutation(6) < 3, 0.75, 1.0)),
    ),
    "skewed": (
        "two tasks have 70 % of the held-out problems",
        lambda rng: _make_truth(rng, weight=np.where(rng.permutation(6) < 2, 0.35, 0.075)),
    ),
    "shared": ("every task helps the others", lambda rng: _make_truth(rng, transfer=0.3 + 0.7 * np.eye(6))),
    "fading": ("what is not trained is forgotten", lambda rng: _make_truth(rng, fade=np.full(6, 0.04))),
    "many": ("twenty tasks", lambda rng: _make_truth(rng, 20)),
    "lake": ("sizes in order, gaps in a trait", _make_lake),
}
"""Kinds of worlds: what is special about each, and its truth for a seed."""


class World(Environment):
    """The environment of a kind and a seed, with its learner."""

    def __init__(self, kind: str, seed: int) -> None:
        rng = np.random.default_rng([seed, *map(ord, kind)])
        self.truth = truth = KINDS[kind][1](rng)
        self.strata, self.seed = len(truth.ability), seed
        names = tuple(range(3, 3 + self.strata)) if truth.ranked else tuple(f"task_{c}" for c in LETTERS[: self.strata])
        knobs = [Knob(name="level", low=1, high=truth.levels, step=1, reach=2, whole=True)]
        if truth.twist:
            knobs.append(Knob(name="twist", trait=True))
        self.space = DesignSpace(names, tuple(knobs), failures=("wrong", "no_answer"), ranked=truth.ranked)
        traits = (0, 1) if truth.twist else (0,)
        self.cells_of_truth = [
            (s, level, t) for s in range(self.strata) for level in range(1, truth.levels + 1) for t in traits
        ]
        self._of, self._level, self._twist = (np.array(column) for column in zip(*self.cells_of_truth, strict=True))

    def make(self, cell: Any, rng: Any) -> Problem:
        """A problem with its u."""
        return Problem(f"{cell.stratum} {rng.randrange(10**12)}", "right", data={"u": round(rng.gauss(0, 1), 6)})

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """Valid if it is `right`, unless the grader of the stratum is broken."""
        if answer == "right" and self.space.ranks[problem.cell.stratum] in self.truth.broken:
            return Verdict(False, 0.0, "no_answer")
        return Verdict(True, 1.0) if answer == "right" else Verdict(False, 0.0, "wrong")

    def find_place(self, problem: Problem) -> tuple[int, int, int]:
        """Stratum, level and twist of a problem, as numbers."""
        level, *twist = problem.cell.values
        return self.space.ranks[problem.cell.stratum], int(level), int(any(twist))

    def answer(self, problem: Problem, rng: Any, count: int) -> list[str]:
        """The learner's answers. rng: a random.Random."""
        stratum, level, twist = self.find_place(problem)
        truth, data = self.truth, problem.data
        ability = truth.ability[stratum] + (0 if truth.own is None else truth.own[stratum] * twist)
        logit = truth.slope[stratum] * (ability - truth.step * level - truth.twist * twist)
        assert isinstance(data, dict)
        chance = truth.lapse[stratum] * apply_logistic(logit + truth.spread[stratum] * data["u"])
        return ["right" if rng.random() < chance else "x" for _ in range(count)]

    def predict(self) -> np.ndarray:
        """The true P(valid) of each cell and u of NODES, float [C, 7]."""
        truth, of = self.truth, self._of
        ability = truth.ability[of] + (0 if truth.own is None else truth.own[of] * self._twist)
        logit = truth.slope[of] * (ability - truth.step * self._level - truth.twist * self._twist)
        chance = truth.lapse[of][:, None] * apply_logistic(logit[:, None] + truth.spread[of][:, None] * NODES)
        return np.where(np.isin(of, truth.broken)[:, None], 0.0, chance)

    def measure_valid(self) -> float:
        """The true P(valid) over the held-out cells."""
        mean = self.predict().mean(axis=1)
        by_stratum = np.array([mean[self._of == stratum].mean() for stratum in range(self.strata)])
        return float(by_stratum @ self.truth.weight)

    def train(self, outcomes: Sequence[tuple[tuple[int, int, int], float]], *, last: bool = True) -> None:
        """Trains the learner. outcomes: the place of each group, and its share of right answers.

        last: whether this is the last part of a round, after which abilities fade.
        """
        truth, ability = self.truth, self.truth.ability - self.truth.fade * last
        own = None if truth.own is None else truth.own.copy()
        for (stratum, _, twist), right in outcomes:
            gain = truth.rate[stratum] * SIGNALS[truth.signal](right)
            if own is not None and twist:  # what is learned of twists is mostly their own
                own[stratum] += 2 * gain
                gain *= truth.carried
            elif own is not None:
                own[stratum] -= truth.apart * gain
            ability = ability + gain * truth.transfer[stratum]
        self.truth = truth._replace(ability=ability, own=own)

    def measure_gains(self) -> np.ndarray:
        """The true gain in P(valid) of one group of each cell, float [C]."""
        truth, of = self.truth, self._of
        chance = self.predict()
        right = chance / np.maximum(truth.lapse[of], 1e-9)[:, None]
        slope = (truth.lapse * truth.slope)[of] * (right * (1 - right)).mean(axis=1)
        worth = np.array([slope[of == s].mean() for s in range(self.strata)]) * truth.weight
        twisted = np.array([(slope * self._twist)[of == s].mean() for s in range(self.strata)]) * truth.weight
        counts = range(ANSWERS + 1)
        signal = [SIGNALS[truth.signal](count / ANSWERS) for count in counts]
        ways = [math.comb(ANSWERS, count) * chance**count * (1 - chance) ** (ANSWERS - count) for count in counts]
        expected = np.einsum("k,kcu->c", signal, np.stack(ways)) / len(NODES)
        reached = (truth.transfer @ worth)[of]
        if truth.own is not None:
            other = reached - truth.apart * twisted[of]
            reached = np.where(self._twist == 1, truth.carried * reached + 2 * twisted[of], other)
        return truth.rate[of] * expected * reached

    def draw_start(self) -> Design:
        """A random design to begin with."""
        rng = np.random.default_rng(self.seed + 999)
        shares = np.round(0.3 / self.strata + 0.7 * rng.dirichlet(np.full(self.strata, 2.0)), 4)
        shares[-1] = 1 - shares[:-1].sum()
        rows: dict[int | str, dict[str, float]] = {}
        for name, share in zip(self.space.strata, shares.tolist(), strict=True):
            rows[name] = {"share": share, "level": int(rng.integers(1, self.truth.levels + 1))}
            if self.truth.twist:
                rows[name]["twist"] = round(float(rng.uniform(0.1, 0.9)), 2)
        return self.space.design(rows)

    def draw_held_out(self) -> list[Problem]:
        """Held-out problems of every stratum and level, by the weights of the strata."""
        found: list[Problem] = []
        for level in range(1, self.truth.levels + 1):
            rows: dict[int | str, dict[str, float]] = {}
            for name, share in zip(self.space.strata, self.truth.weight.tolist(), strict=True):
                rows[name] = {"share": share, "level": level} | ({"twist": 0.5} if self.truth.twist else {})
            found += self.draw(self.space.design(rows), HELD_OUT // self.truth.levels, seed=10**6 + level)
        return found
