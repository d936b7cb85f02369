"""Scores of teachers in worlds of known truth, from no redesign, 0, to an oracle, 1.

lakewright bench worlds

A run has ROUNDS rounds of PROBLEMS problems and begins with a random design. The oracle puts every single group on the
cell of the largest true gain. It knows abilities, rates and transfer, but looks no further than the next group.
"""

import random
import statistics
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError, suggest
from lakewright.engineer import Engineer, EngineerSettings
from lakewright.engineer.difficulty import DifficultySettings
from lakewright.engineer.teachers import TEACHERS
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.bench.worlds import ANSWERS, KINDS, World

ROUNDS, PROBLEMS, SEEDS = 12, 64, 5
USUAL = ("gain", "difficulty", "coaching", "thompson", "proportional", "rlve", "learning_progress")


class WorldScore(msgspec.Struct, frozen=True):
    """A teacher in a kind of world: (figure - no redesign) / (oracle - no redesign), at the end and along the way.

    error: the standard error of `end` over the seeds. figures: P(valid) at the end of no redesign, of the teacher and
    of the oracle.
    """

    kind: str
    teacher: str
    end: float
    along: float
    error: float
    figures: tuple[float, float, float]


def check_names(kinds: Sequence[str], teachers: Sequence[str]) -> None:
    """Raises InputError on a kind of world or a teacher that is unknown."""
    if unknown := [name for name in kinds if name not in KINDS]:
        raise InputError(f"--kinds: {unknown[0]!r:.60} is unknown; {suggest(unknown[0], KINDS)}")
    if unknown := [name for name in teachers if name not in TEACHERS and ":" not in name]:
        raise InputError(f"--teachers: {unknown[0]!r:.60} is unknown; {suggest(unknown[0], TEACHERS)}")


def score_teachers(
    kinds: Sequence[str], teachers: Sequence[str], seeds: int, report: Callable[[int], object] = lambda _: None
) -> list[WorldScore]:
    """The scores of teachers in kinds of worlds.

    Args:
        kinds, teachers: names.
        seeds: worlds of each kind.
        report: called with 1 after every run.
    """
    check_names(kinds, teachers)
    found = []
    for kind in kinds:
        curves = {}
        for name in ("fixed", "oracle", *teachers):
            curves[name] = np.array([run_world(World(kind, seed), name, report) for seed in range(seeds)])
        found += [_score(kind, name, curves["fixed"], curves[name], curves["oracle"]) for name in teachers]
    return found


def _score(kind: str, teacher: str, fixed: np.ndarray, curves: np.ndarray, oracle: np.ndarray) -> WorldScore:
    room, gain = oracle - fixed, curves - fixed
    ends = gain[:, -1] / room[:, -1].mean()
    error = float(ends.std(ddof=1)) / len(ends) ** 0.5 if len(ends) > 1 else 0.0
    figures = (float(fixed[:, -1].mean()), float(curves[:, -1].mean()), float(oracle[:, -1].mean()))
    return WorldScore(kind, teacher, float(ends.mean()), float(gain.mean() / room.mean()), error, figures)


def run_world(world: World, teacher: str, report: Callable[[int], object] = lambda _: None) -> list[float]:
    """The true P(valid) of a world's learner before and after each round, under a teacher or the `oracle`."""
    curve = _follow_oracle(world) if teacher == "oracle" else _follow_teacher(world, teacher)
    report(1)
    return curve


def _follow_oracle(world: World) -> list[float]:
    rng, curve = np.random.default_rng(world.seed), [world.measure_valid()]
    for _ in range(ROUNDS):
        for number in range(PROBLEMS):
            best = int(np.argmax(world.measure_gains()))
            chance = float(rng.choice(world.predict()[best]))
            outcome = (world.cells_of_truth[best], rng.binomial(ANSWERS, chance) / ANSWERS)
            world.train([outcome], last=number == PROBLEMS - 1)
        curve.append(world.measure_valid())
    return curve


def _follow_teacher(world: World, teacher: str) -> list[float]:
    guided = world.truth.signal == "guided"  # which a user is told to state
    settings = EngineerSettings(difficulty=DifficultySettings(objective="regret" if guided else "auto"))
    rng, held_out = random.Random(world.seed), world.draw_held_out()
    engineer = Engineer(
        world, teacher, world.draw_start(), held_out=held_out, settings=settings, seed=world.seed, rounds=ROUNDS
    )
    curve = [world.measure_valid()]
    for _ in range(ROUNDS):
        problems = engineer.draw(PROBLEMS)
        groups = world.groups(problems, [world.answer(problem, rng, ANSWERS) for problem in problems])
        right = [group.valid / ANSWERS for group in groups]
        world.train([(world.find_place(problem), part) for problem, part in zip(problems, right, strict=True)])
        engineer.observe(groups)
        greedy = [world.answer(problem, rng, 1)[0] for problem in held_out]
        engineer.redesign(world.tallies(held_out, greedy))
        curve.append(world.measure_valid())
    return curve


def format_scores(scores: Sequence[WorldScore]) -> str:
    """A row for each kind, a column for each teacher, with the mean and the least of each at the bottom."""
    teachers = list(dict.fromkeys(score.teacher for score in scores))
    kinds = list(dict.fromkeys(score.kind for score in scores))
    by_place = {(score.kind, score.teacher): score for score in scores}
    rows = [(f"{kind}: {KINDS[kind][0]}", *(f"{by_place[kind, name].end:.2f}" for name in teachers)) for kind in kinds]
    columns = [[by_place[kind, name] for kind in kinds] for name in teachers]
    mean = [f"{statistics.fmean(one.end for one in column):.2f}" for column in columns]
    along = [f"{statistics.fmean(one.along for one in column):.2f}" for column in columns]
    least = [f"{min(one.end for one in column):.2f}" for column in columns]
    rows += [("mean at the end", *mean), ("mean along the way", *along), ("least", *least)]
    return "\n".join(format_markdown(["world", *teachers], rows))
