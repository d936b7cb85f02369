"""What the engineer makes of the rounds, by part: proposals, verdicts, texts, tokens, lessons, models."""

import json
from collections.abc import Mapping
from typing import Any

import jax
import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.delta import make_edit, summarize_delta
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty import (
    DifficultyModel,
    estimate_diminishing_worth,
    estimate_worth,
    fit_model,
    make_forecast,
    measure_calibration,
)
from lakewright.engineer.evidence import (
    PRESETS,
    DeltaGrammar,
    Evidence,
    EvidenceSettings,
    Modules,
    evidence_text,
    evidence_tokens,
    fit_to_budget,
    show_evidence,
    token_estimate,
)
from lakewright.engineer.guard import GuardSettings, project_delta, widen_reach
from lakewright.engineer.lessons import LessonSettings, examine_engineer, synthetic_examples
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.steps import negotiate
from lakewright.engineer.teachers import Reply, Tools, answer_schema, ask_about, make_teacher
from lakewright.engineer.trial import CellTrial, ProposalReward, estimate_lead, reward_proposals, sum_up_trial
from tests.support.samples.evidence import decode_first, sample_first
from tests.support.unchanged.lake_rounds import digest, known, plain, plain_state, sure

SHORT = ("small", "one-agent")  # rounds whose texts are recorded as they are
LESSONS = {
    "proportional": ("regret", 1.0, ("v6", "difficulty", "rl_details", "shuffled")),
    "rules": ("learnability", 1.0, ("v5", "v3", "none")),
    "forecast": ("regret", 2.0, ("forecast", "difficulty")),
}
EVERYTHING = Modules(statistics=True, cases=True, difficulty=True, self_summary=True, rl_details=True)


def decode_odd(prompt: list[str], allowed: Any) -> list[str]:
    """A policy that takes the middle token and the last in turn."""
    tokens: list[str] = []
    while choices := allowed(tokens):
        tokens.append(choices[-1] if len(tokens) % 2 else choices[len(choices) // 2])
    return tokens


def ask(messages: Any, schema: Mapping[str, Any], seed: int) -> Reply:
    """A language model whose every third answer is none."""
    if seed % 3 == 0:
        return Reply("no JSON", 7)
    first = next(iter(schema["properties"]["edits"]["properties"]))
    edits = {first: {"reason": "too hard", "data_ratio": 0.05, "hole_ratio": -0.1}}
    return Reply(json.dumps({"edits": edits, "summary": "s"}), 50, 0.01)


def propose(name: str, options: Mapping[str, Any], round: str) -> tuple[list[Any], Any]:
    """What a teacher proposes on a round with three keys in turn, and its state at the end."""
    evidence, lake = known(round).evidence, known(round).lake
    if name == "difficulty" and evidence.forecast:
        certain = msgspec.structs.replace(evidence.forecast, model=sure(evidence.forecast.model))
        evidence = msgspec.structs.replace(evidence, forecast=certain)
    decode = decode_odd if name == "self" else None
    asked = ask if name in ("base", "endpoint") else None
    tools = Tools(EvidenceSettings("v6"), decode=decode, sample=sample_first, ask=asked, proposals=2)
    teacher = make_teacher(name, tools, options)
    found = [teacher.propose(evidence, evidence.design, lake.space, jax.random.key(seed)) for seed in range(3)]
    return found, plain_state(teacher.state_dict())


def tell_proposals(name: str, options: Mapping[str, Any], round: str) -> Any:
    found, state = propose(name, options, round)
    lines = ["" if one.delta is None else summarize_delta(one.delta, known(round).lake.space) for one in found]
    return {"lines": lines, "digest": digest([plain(found), state])}


def tell_fitted(name: str, options: Mapping[str, Any], round: str) -> Any:
    return [list(edit["changes"].values()) for one in propose(name, options, round)[0] for edit in list_edits(one)]


def list_edits(proposal: Any) -> list[Any]:
    return [msgspec.to_builtins(edit) for _, edit in sorted(proposal.delta.edits.items())]


def tell_verdicts(round: str) -> Any:
    """The guard's verdicts on a hundred random deltas, some of which name an unknown size."""
    design, lake, rng = known(round).design, known(round).lake, np.random.default_rng(7)
    verdicts = []
    for number in range(100):
        edits = {}
        for size in [*design.strata, *[99] * (number % 50 == 0)]:
            if rng.random() < 0.6:
                data, hole, wait = (rng.uniform(-most, most) for most in (0.5, 0.4, 1.0))
                changes = {"data_ratio": data, "hole_ratio": hole, "wait_ratio": wait}
                edits[size] = make_edit(lake.space, "r", {name: round_to(part) for name, part in changes.items()})
        free = GuardSettings(floor=0.01, widen=0.0, reach={"data_ratio": 1.0, "hole_ratio": 0.5, "wait_ratio": 1.0})
        settings = widen_reach(
            GuardSettings(floor=0.05, widen=2.0) if number % 3 else free, lake.space, (number % 5) / 5
        )
        verdicts.append(plain(project_delta(design, Delta(edits), lake, settings)))
    return {"first": verdicts[:6], "digest": digest(verdicts)}


def round_to(value: float) -> float:
    return float(round(value, 3))


def tell_forms(round: str, preset: str) -> Any:
    """Evidence in words and in tokens, and what of it is cut for a budget."""
    space = known(round).lake.space
    modules = EVERYTHING if preset == "everything" else PRESETS[preset]
    view = show_evidence(known(round).evidence, modules, jax.random.key(3))
    text, tokens = evidence_text(view, space), evidence_tokens(view, space)
    plainly = round in SHORT and preset in ("everything", "shuffled")
    return {
        "text": text if plainly else digest(text),
        "tokens": " ".join(tokens) if plainly else digest(tokens),
        "cut": [tell_cut(view, budget, space) for budget in (200, 400, 1000)],
    }


def tell_cut(view: Evidence, budget: int, space: DesignSpace) -> Any:
    try:
        return list(fit_to_budget(view, budget, lambda seen: token_estimate(evidence_text(seen, space)))[1])
    except InputError as error:
        return str(error)


def tell_questions(round: str) -> Any:
    """What a language model is asked, the schema of its answer, and the grammar of a model of tokens."""
    evidence, space = known(round).evidence, known(round).lake.space
    asked = ask_about(evidence, evidence.design, space, EvidenceSettings("v5"), jax.random.key(1))
    inline = answer_schema(space.sort_strata(evidence.design.strata), space, inline=True, summary=False)
    grammar, prefixes = DeltaGrammar(space, evidence.design.strata), [[], ["<hole+1>"], ["<hole+1>", "<because_hole>"]]
    first = grammar.allowed([])[0]
    allowed = [grammar.allowed([]), *(grammar.allowed([first, *prefix]) for prefix in prefixes)]
    messages = asked.messages if round == "small" else digest(asked.messages)
    return {"messages": messages, "cut": asked.cut, "schemas": digest([asked.schema, inline]), "allowed": allowed}


def tell_lessons(round: str, rule: str) -> Any:
    """Made-up evidence with a rule's answers, and how a policy does on them that takes the first token."""
    objective, power, presets = LESSONS[rule]
    design, space = known(round).design, known(round).lake.space
    settings = LessonSettings(rule, power, presets)
    lessons = settings.lessons(objective, EvidenceSettings("v6"), known(round).settings)
    examples = synthetic_examples(40, design, space, 7, np.random.default_rng(11), lessons)
    first = [[" ".join(prompt), " ".join(answer)] for prompt, answer in examples[:2]]
    exam = examine_engineer(examples, design, space, decode_first)
    return {"first": first, "digest": digest([list(pair) for pair in examples]), "exam": plain(exam)}


def tell_models(round: str) -> Any:
    """The fitted model, and what follows from it: forecast, calibration, worth, trial and rewards."""
    seen, space = known(round), known(round).lake.space
    model = fit_model(seen.observations, seen.settings, space)
    cells, certain = [one.cell for one in seen.observations], sure(model)
    predicted = model.predict(cells, space)
    drawn = certain.sample(cells, space, np.random.default_rng(5), 1)
    forecast = make_forecast(
        seen.design, seen.observations, seen.held_out, seen.settings, space, seen.evidence.forecast, []
    )
    surely = msgspec.structs.replace(forecast, model=certain)
    rows = {size: {**row, "hole_ratio": min(0.5, row["hole_ratio"] + 0.1)} for size, row in seen.design.strata.items()}
    other = seen.design.replace({size: {**row, "wait_ratio": row["wait_ratio"] / 2} for size, row in rows.items()})
    mixes = seen.lake.cells(other), seen.lake.cells(seen.design)
    worth = estimate_worth(certain, mixes[0], space, mixes[1])
    return {
        "weights": model.weights,
        "variances": np.diag(model.covariance).tolist(),
        "fitted": [model.groups, model.evenness, forecast.certainty, forecast.success],
        "predicted": [predicted.mean.tolist(), predicted.deviation.tolist()],
        "value": certain.value(drawn)[0].tolist(),
        "grid": [[one.p, one.deviation, one.learnability, one.groups] for one in forecast.grid],
        "calibration": [plain(measure_calibration(model, 0.4, seen.observations, space)), plain(forecast.calibration)],
        "worth": [worth.mean, worth.deviation, estimate_diminishing_worth(surely, mixes[0], 3.0, space)],
        **tell_trial(round, other, certain),
    }


def tell_trial(round: str, other: Design, model: DifficultyModel) -> Any:
    """A trial of a design with made-up rollouts, and what proposals earn by a model."""
    seen, space = known(round), known(round).lake.space
    mixes, rng = (seen.lake.mix(other), seen.lake.mix(seen.design)), np.random.default_rng(1)
    trials = {cell: CellTrial(cell, 4, rng.integers(0, 5, 6).tolist()) for cell in sorted({*mixes[0], *mixes[1]})}
    values = {cell: trial.values(model.objective) for cell, trial in trials.items()}
    signals = {cell: trial.signal() for cell, trial in trials.items()}
    last = negotiate(
        make_teacher("random"), seen.evidence, seen.design, seen.lake, jax.random.key(5), GuardSettings(floor=0.05), 4
    )
    proposal = last[-1].proposal
    deltas = [delta for delta in (proposal.delta, *proposal.candidates) if delta]
    verdicts = [project_delta(seen.design, delta, seen.lake, GuardSettings(floor=0.05)) for delta in deltas]
    current = seen.lake.cells(seen.design)

    def score(design: Design) -> float:
        return estimate_worth(model, seen.lake.cells(design), space, current).mean

    return {
        "lead": plain(estimate_lead(*mixes, values, 4, None)),
        "tried": plain(sum_up_trial(other, mixes[0], signals, model.objective)),
        "proposed": [summarize_delta(delta, space) for delta in deltas],
        "earned": plain(reward_proposals(verdicts, score, ProposalReward(), space)),
    }
