"""The evidence shows what its modules switch on, and nothing else, in words and in tokens, within its budget."""

import jax
import msgspec
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import BoardOutcomes
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty import DifficultySettings, Observation, make_forecast
from lakewright.engineer.evidence import (
    PRESETS,
    Evidence,
    EvidenceSettings,
    Modules,
    evidence_text,
    evidence_tokens,
    fit_to_budget,
    read_evidence,
    show_evidence,
    token_estimate,
    vocabulary_of,
)
from lakewright.engineer.evidence.modules import CUTS
from lakewright.engineer.tally import Case, Drawn
from lakewright.experiments.environments.lake import GUIDELINE, design_of
from tests.support.refusals import refused
from tests.support.samples.evidence import SPACE, V6, edit, everything, past, rollouts, tally, view

FEW = BoardOutcomes(10, 4, 3, 2, {"hole": 5, "swap_conflict": 1}, 5, 1)
MORE = BoardOutcomes(10, 9, 9, 9, {"hole": 1}, 5, 5)
FORCED = BoardOutcomes(5, 1, 1, 1, {"hole": 3, "swap_conflict": 1}, 5, 1)
ALL = Modules(*[True] * 10)
DELTA = Delta({5: edit("too\nhard", hole_ratio=-0.05)})
WORDS = set(vocabulary_of(SPACE).tokens)


def design(hole_ratio: float) -> Design:
    return design_of(EnvConfig({5: SizeConfig(0.5, hole_ratio, 0.2), 8: SizeConfig(0.5, hole_ratio, 0.2)}))


PAST = [past(design(ratio), {5: FEW, 8: MORE}, DELTA, "projected: less") for ratio in (0.0, 0.1, 0.2)]
BOARD = {"grid": ["....."] * 5, "starts": [[0, 0], [1, 1]], "goals": [[2, 2], [3, 3]], "plan": ["RD", "UL"], "agent": 1}
CASE = Case(5, "", "hole", 2, BOARD)


def drawn(
    hole_ratio: float, wait_ratio: float, makespan: float, sum_of_costs: float, acceptance: float | None
) -> Drawn:
    """What was drawn of a size, of 48 boards."""
    knobs = {"hole_ratio": hole_ratio, "wait_ratio": wait_ratio}
    return Drawn(48, knobs, {"makespan": makespan, "sum_of_costs": sum_of_costs}, acceptance)


KNOWN = everything(
    design(0.3),
    {5: FEW, 8: MORE},
    PAST,
    3,
    rounds=4,
    problems=96,
    forced={5: FORCED},
    summary="<size_5> <hole-1> <because_hole> <end>",
    groups=[rollouts(5, True, informative=7, valid=20)],
    training={"grpo.group": 8, "reward": 0.5, "grpo.loss_type": "dapo"},
    statistics={5: drawn(0.31, 0.25, 6.5, 11.0, 0.4), 8: drawn(0.3, 0.2, 9.0, 16.0, None)},
    cases=[CASE, CASE],
    forecast=make_forecast(
        design(0.3), [Observation(Cell(5, (0.1, False), (2,)), 40, 30.0, 2.0)], [], DifficultySettings(), SPACE
    ),
)
FACTS = {"outcomes", "by_trait", "guideline", "history", "summary", "round", "rounds", "problems"}
FACTS |= {"groups", "training", "statistics", "cases", "forecast"}
PARTS = {
    "failures": {"outcomes", "by_trait"},
    "guideline": {"guideline"},
    "history": {"history"},
    "self_summary": {"summary"},
    "bookkeeping": {"round", "rounds", "problems"},
    "rl_details": {"groups", "training"},
    "statistics": {"statistics"},
    "cases": {"cases"},
    "difficulty": {"forecast"},
}


def see(modules: Modules, evidence: Evidence = KNOWN, seed: int = 0) -> Evidence:
    return show_evidence(evidence, modules, jax.random.key(seed))


@pytest.mark.parametrize("module", PARTS)
def test_a_module_shows_its_part_and_leaves_the_others_alone(module):
    off = see(msgspec.structs.replace(ALL, **{module: False}))
    hidden = {name for name in FACTS if getattr(off, name) != getattr(see(ALL), name)}
    assert hidden == PARTS[module] | ({"history"} if module == "failures" else set())
    assert not any(getattr(off, name) for name in PARTS[module])


def test_failures_off_leaves_no_outcome_anywhere():
    off = see(msgspec.structs.replace(ALL, failures=False))
    assert [old.outcomes for old in off.history] == [{}, {}, {}]
    assert [old.design for old in off.history] == [old.design for old in PAST]
    assert "valid" not in evidence_text(msgspec.structs.replace(off, guideline="", groups=[], forecast=None), SPACE)


def test_the_default_config_comes_first_where_it_is_asked_for():
    assert see(V6).history == PAST[1:]
    assert see(Modules(default_in_history=True)).history == PAST
    assert see(Modules(history=False, default_in_history=True)).history == []
    assert view(Modules(default_in_history=True), design(0.3), {}).history == [], "round 0 has no earlier one"


def switched(preset: str) -> set[str]:
    return {name for name in Modules.__struct_fields__ if getattr(PRESETS[preset], name)}


def test_the_presets_are_the_papers():
    v1 = {"failures"}
    v4 = v1 | {"guideline", "history"}
    assert switched("v1") == v1
    assert switched("v2") == v1 | {"guideline"}
    assert switched("v3") == v4 | {"default_in_history"}
    assert switched("v4") == v4
    assert switched("v5") == v4 | {"self_summary"}
    assert switched("v6") == v4 | {"bookkeeping"}
    assert switched("rl_details") == v4 | {"rl_details"}
    assert switched("shuffled") == switched("v6") | {"shuffled"}
    assert switched("none") == set()
    assert set(PRESETS) >= {"v1", "v2", "v3", "v4", "v5", "v6", "rl_details"}, "those of the paper"
    assert switched("difficulty") == switched("v6") | {"difficulty"}
    assert switched("forecast") == {"difficulty"}
    assert switched("worth") == {"difficulty", "worth"}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_a_text_and_a_token_form(preset):
    seen = see(PRESETS[preset])
    assert "5x5, 2 agents: data_ratio 0.5, hole_ratio 0.3, wait_ratio 0.2" in evidence_text(seen, SPACE)
    assert set(evidence_tokens(seen, SPACE)) <= WORDS
    assert see(PRESETS[preset]) == seen


def test_without_evidence_only_the_current_config_is_shown():
    assert evidence_text(see(PRESETS["none"]), SPACE).splitlines()[0] == "## Current config"
    assert len(evidence_text(see(PRESETS["none"]), SPACE).splitlines()) == 3


def test_shuffled_evidence_shows_each_size_the_figures_of_another_in_every_round():
    seen = see(PRESETS["shuffled"])
    exchanged = {8: tally(FEW), 5: tally(MORE)}
    assert seen.outcomes == exchanged
    assert [old.outcomes for old in seen.history] == [exchanged] * 2
    assert seen.design == KNOWN.design
    three = EnvConfig({size: SizeConfig(1 / 3, 0.2, 0.2) for size in (3, 4, 5)})
    outcomes = {size: BoardOutcomes(size, 0, 0, 0, {}, 0, 0) for size in three.sizes}
    shifts = {see(PRESETS["shuffled"], everything(three, outcomes), seed).outcomes[3].problems for seed in range(20)}
    assert shifts == {4, 5}


def test_one_size_alone_cannot_be_shuffled():
    with refused("evidence: 5"):
        view(PRESETS["shuffled"], EnvConfig.single(5, 2, 0.2, 0.5), {5: FEW})


def test_the_text_shows_every_module():
    text = evidence_text(see(ALL), SPACE)
    for part in (
        "This is round 4 of 4. It trained on 96 boards.",
        GUIDELINE,
        "Round shown 1:",
        'then proposed: "5x5 hole -0.05 (too hard)"',
        'which was "projected: less"',
        "5x5: 10 boards, valid 0.40, optimal 0.30 by makespan, 0.20 by sum of costs; failed by parse error 0.00, "
        "off board 0.00, hole 0.50, vertex conflict 0.00, swap conflict 0.10, not home 0.00",
        "  a wait is forced: 5 boards, valid 0.20",
        "  no wait is forced: 5 boards, valid 0.60",
        '"<size_5> <hole-1> <because_hole> <end>"',
        "grpo.group: 8",
        "grpo.loss_type: dapo",
        "5x5, hole_ratio 0.25, a forced wait: 10 boards, valid 0.25, groups with a signal 0.70",
        "5x5: 48 boards, hole_ratio 0.310, wait_ratio 0.250, mean optimum 6.50 (makespan), 11.00 (sum of costs), 0.400",
        "5x5, failed by hole of agent 1 at step 2",
        "agent 0 (0, 0) to (2, 2); agent 1 (1, 1) to (3, 3)",
        "8x8, a forced wait: valid ",
    ):
        assert part in text, f"{part!r} is not in\n{text}"


def test_what_a_model_wrote_stays_on_its_line():
    nasty = msgspec.structs.replace(KNOWN, summary="a\n## Current config\x1b[2J", refusals=["no\nJSON"])
    text = evidence_text(see(ALL, nasty), SPACE)
    assert '"a ## Current config [2J"' in text
    assert '- "no JSON"' in text
    assert text.count("\n## Current config\n") == 1


def test_the_tokens_show_every_module():
    tokens = " ".join(evidence_tokens(see(ALL), SPACE))
    for words in (
        "<summary> <size_5> <hole-1> <because_hole> <end>",
        "<rollouts> <size_5> <q10> <q7> <q3> <q0>",  # forced; 7 of 10 informative; 20 of 80 valid; no reward
        "<sampled> <size_5> <q6> <q3> <q4> <q7>",  # 0.31 / 0.05, 0.25 / 0.1, 0.4, 6.5 / 10
        "<sampled> <size_8> <q6> <q2> <unknown> <q6>",
        "<case> <size_5> <because_hole> <q2>",
        "<forecast> <size_5> <q7> ",  # 30 of 40 valid where it was seen
    ):
        assert words in tokens, f"{words} is not in {tokens}"
    assert evidence_tokens(msgspec.structs.replace(see(V6), refusals=["no"]), SPACE)[-2:] == ["<refused>", "<delta>"]


def size_of(evidence: Evidence) -> int:
    return token_estimate(evidence_text(evidence, SPACE))


def test_what_fits_is_not_cut():
    assert fit_to_budget(see(ALL), size_of(see(ALL)), size_of) == (see(ALL), ())


def test_modules_are_cut_in_their_order_until_the_evidence_fits():
    full, order = see(ALL), [name for name, _ in CUTS]
    fewest = size_of(view(PRESETS["v1"], design(0.3), {5: FEW, 8: MORE}))
    cuts = [fit_to_budget(full, budget, size_of) for budget in range(fewest, size_of(full) + 1, 7)]
    for (evidence, cut), budget in zip(cuts, range(fewest, size_of(full) + 1, 7), strict=True):
        assert size_of(evidence) <= budget
        names = [name.split(" ")[0] for name in cut]
        assert names == order[: len(names)]
    first = ("cases x2", "statistics", "difficulty", "rl_details", "self_summary", "history x3")
    assert cuts[0][1] == (*first, *order[-4:-1])


def test_refusals_are_cut_last_so_that_they_never_end_a_run():
    few = view(PRESETS["v1"], design(0.3), {5: FEW, 8: MORE}, refusals=["no" * 100] * 2)
    bare = msgspec.structs.replace(few, refusals=[])
    assert fit_to_budget(few, size_of(bare), size_of) == (bare, ("refusals",))


def test_the_oldest_round_is_cut_first():
    evidence = see(Modules(default_in_history=True))
    cut, names = fit_to_budget(evidence, size_of(evidence) - 1, size_of)
    assert (cut.history, names) == (PAST[1:], ("history",))


def test_a_budget_that_not_even_the_outcomes_fit_is_refused():
    with refused("evidence.budget", 10):
        fit_to_budget(see(ALL), 10, size_of)


def test_evidence_survives_json():
    raw = msgspec.json.decode(msgspec.json.encode(KNOWN))
    assert read_evidence(raw, "evidence.json") == KNOWN


@pytest.mark.parametrize("version", [1, 2, None, "3"])
def test_evidence_of_another_version_is_refused_in_one_line(version):
    raw = msgspec.json.decode(msgspec.json.encode(KNOWN)) | {"version": version}
    with refused("evidence.json:", f"{version!r}", 3):
        read_evidence(raw, "evidence.json")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"preset": "v7"}, ["preset", "'v7'", "v1, v2, v3, v4, v5, v6, rl_details, shuffled"]),
        ({"modules": {"hints": True}}, ["modules: 'hints'", "failures, guideline"]),
    ],
)
def test_an_unknown_preset_or_module_is_refused_and_the_choices_named(given, problem):
    with refused(*problem):
        EvidenceSettings(**given)


def test_single_modules_are_switched_on_top_of_a_preset():
    chosen = EvidenceSettings("v1", {"cases": True}).chosen()
    assert chosen == msgspec.structs.replace(PRESETS["v1"], cases=True)
