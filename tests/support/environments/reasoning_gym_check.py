"""Run by the Python of an environment with reasoning-gym: its own curriculum and ours, side by side, and its tasks."""

import warnings

from reasoning_gym.coaching.base_curriculum import DefaultCurriculumContext, RangeAttributeMode
from reasoning_gym.coaching.curriculum_config import CurriculumAttributeConfig, CurriculumExperimentConfig
from reasoning_gym.coaching.experiment import CurriculumExperiment
from reasoning_gym.factory import CURRICULA

from lakewright.core_jax.results import GroupStatistics
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence import CellGroups, Evidence
from lakewright.engineer.guard import GuardSettings, project_delta
from lakewright.engineer.teachers.success_levels import CoachingTeacher
from lakewright.experiments.environments.reasoning_gym import ReasoningGym

warnings.simplefilter("ignore")
HARDER, EASIER = 1.0, 0.0


def redesign(environment: Environment, design, success: float):
    """The design after reasoning-gym's thresholds saw a share of valid answers in every cell."""
    seen = [
        CellGroups(Cell(*cell), GroupStatistics(100, 0, 0, 100, int(100 * success), success, 0.0, 0.0))
        for cell in environment.cells(design)
    ]
    evidence = Evidence(design=design, outcomes={}, round=0, rounds=9, groups=seen)
    delta = CoachingTeacher().propose(evidence, design, environment.space, None).delta
    return project_delta(design, delta, environment, GuardSettings()).design


# Its own curriculum: chain_sum at level 2, upper bound alone.
upper = DefaultCurriculumContext(mode=RangeAttributeMode.UPPER_BOUND)
config = CurriculumExperimentConfig(
    curricula={"chain_sum": CurriculumAttributeConfig(attribute_levels={"*": 2}, weight=1.0)}
)
theirs = CurriculumExperiment("theirs", config, size=10, seed=1, context=upper)


def bounds() -> tuple[int, int, int, int]:
    """The bounds of terms and digits in their experiment."""
    found = theirs.composite.datasets["chain_sum"].config
    return found.min_terms, found.max_terms, found.min_digits, found.max_digits


assert bounds() == (4, 4, 3, 3)
theirs.update_difficulty("chain_sum", "increment")
assert bounds() == (4, 5, 3, 4), "the lower bounds stay, and all attributes move at once"
theirs.update_difficulty("chain_sum", "decrement")
refused = ""
try:
    theirs.update_difficulty("chain_sum", "decrement")
except AssertionError as error:
    refused = str(error)
assert "max_terms must be >= min_terms" in refused, "a step down is an error"

# Ours: the same thresholds on the same task at the same level.
ours = ReasoningGym("chain_sum", by="task")
design = ours.space.design({"chain_sum": {"share": 1, "num_terms": 2, "num_digits": 2}})
harder = redesign(ours, design, HARDER)
assert harder.strata["chain_sum"] == {"share": 1.0, "num_terms": 3, "num_digits": 3}
terms = {problem.prompt.count("+") + problem.prompt.count("- ") + 1 for problem in ours.draw(harder, 50, 1)}
assert terms == {5}, f"easy problems have left: {terms}"
for expected in (2, 1, 0, 0):
    harder = redesign(ours, harder, EASIER)
    assert harder.strata["chain_sum"]["num_terms"] == expected, "steps down go down, and stop at the lowest place"
one = Delta({"chain_sum": make_edit(ours.space, "one knob", {"num_digits": 1.0})})
found = project_delta(design, one, ours, GuardSettings())
assert (found.status, found.design.strata["chain_sum"]["num_terms"]) == ("accepted", 2), "one knob moves by itself"
far = Delta({"chain_sum": make_edit(ours.space, "a jump", {"num_digits": 7.0})})
assert project_delta(design, far, ours, GuardSettings()).design.strata["chain_sum"]["num_digits"] == 3, "jumps are cut"

# A ladder that it does not check before it draws.
caesar = ReasoningGym("caesar_cipher", by="task")
start = caesar.space.design({"caesar_cipher": {"share": 1, "rotation": 1, "words": 0}})
top = redesign(caesar, start, HARDER)
assert top.strata["caesar_cipher"]["rotation"] == 1, "a rotation that its config refuses is kept out"
assert len(caesar.draw(top, 10, seed=0)) == 10

# Many tasks as strata, each judged by its own scorer.
many = ReasoningGym(["chain_sum", "spell_backward", "prime_factorization", "number_sequence", "n_queens"])
problems = many.draw(many.start(), 25, seed=5)
assert {problem.cell.stratum for problem in problems} == set(many.space.strata)
assert all(many.check_verdict(problem, problem.answer).valid for problem in problems)
assert not any(many.check_verdict(problem, "no idea").valid for problem in problems)
assert many.draw(many.start(), 25, seed=6) != problems

# Every curriculum makes a space; that their problems can be drawn is in docs/data/reasoning_gym.json.
for name in CURRICULA:
    assert ReasoningGym(name).space.strata, name
print(len(CURRICULA), "curricula")
