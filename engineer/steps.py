"""The steps of a redesign and their settings: the proposal, its rivals, their trial, and the next design."""

import functools
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import describe_error, show
from lakewright.engineer.cells import Cell, Stratum, sort_cells
from lakewright.engineer.delta import derive_delta
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty.abilities_fit import ROUNDS
from lakewright.engineer.difficulty.forecasting import Forecast, HeldOutCell
from lakewright.engineer.difficulty.model import DifficultySettings, Observation, observe_held_out
from lakewright.engineer.difficulty.worth import Worth
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.guard import (
    Bounds,
    GuardSettings,
    GuardVerdict,
    is_drawable,
    is_of_space,
    project_delta,
)
from lakewright.engineer.outcomes import InCell, Outcomes, tally_by_stratum
from lakewright.engineer.proposal import Proposal, Teacher
from lakewright.engineer.random_generators import Key, fold_key, split_key
from lakewright.engineer.rollback import Comparison
from lakewright.engineer.seen import SeenCells, pool_observations
from lakewright.engineer.signal import find_no_valid_answer
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally
from lakewright.engineer.trial.selection import shortlist_designs
from lakewright.engineer.trial.trial import Trial, TrialWork, try_beside_current

Source = Literal["proposal", "trial", "rollback", "current"]
STRETCHES = (2.0, 0.5, 3.0, 1.5, 4.0)  # of a change, in the order in which they are proposed
PREFERRED = "another proposal of yours, which the trial preferred"
TOLD = 300  # characters of a refusal that the teacher is shown; it may quote the teacher's own output


class Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One try: what was proposed, and the guard's verdict on it."""

    proposal: Proposal
    verdict: GuardVerdict


def negotiate(
    teacher: Teacher,
    evidence: Evidence,
    design: Design,
    bounds: Bounds,
    key: Key,
    settings: GuardSettings,
    proposals: int = 1,
    held: Container[Stratum] = (),
) -> list[Attempt]:
    """Asks until a proposal is not refused, at most `settings.tries` times; the last attempt is what counts.

    Args:
        teacher: the teacher to ask.
        evidence, design: as in `Teacher.propose`.
        bounds: the environment.
        key: consumed.
        settings: the guard's settings.
        proposals: how many deltas are asked for, to be tried side by side.
        held: the strata that get no more than the floor.

    Each refusal is in `evidence.refusals` of the next try, and leaves no trace in the teacher's state. If the
    last is refused too, its verdict holds `design`. Raises InputError if the code of a user's own teacher fails, or
    `drawable` does.
    """
    attempts: list[Attempt] = []
    # A refused try must leave no trace: otherwise a bandit would learn from a proposal that nobody trained on.
    before = teacher.state_dict()
    for attempt_key in split_key(key, settings.tries):
        proposal = _ask(teacher, evidence, design, bounds.space, attempt_key)
        if proposal.delta is None:
            verdict = GuardVerdict("refused", [proposal.error], design)
        else:
            verdict = project_delta(design, proposal.delta, bounds, settings, held)
            if not is_of_space(proposal.delta, bounds.space):  # which no file can hold
                proposal = msgspec.structs.replace(proposal, delta=None, error="; ".join(verdict.reasons))
        if verdict.status != "refused":
            if proposals > 1 and proposal.delta and proposal.delta.edits:
                ask = functools.partial(_ask, teacher, evidence, design, bounds.space)
                proposal = _add_rivals(proposal, teacher, ask, fold_key(key, proposals), proposals, bounds.space)
            return [*attempts, Attempt(proposal, verdict)]
        attempts.append(Attempt(proposal, verdict))
        teacher.load_state_dict(before)
        refusals = [*evidence.refusals, "; ".join(verdict.reasons)[:TOLD]]
        evidence = msgspec.structs.replace(evidence, refusals=refusals)
    return attempts


def _ask(teacher: Teacher, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
    """The proposal of a teacher, without candidates that are not of the space.

    Raises InputError, in one line, if the code of a user's own teacher raises or returns something else.
    """
    where = f"{type(teacher).__name__}.propose"
    evidence = msgspec.structs.replace(evidence, design=evidence.design.copy())
    try:
        proposal = teacher.propose(evidence, design.copy(), space, key)
    except InputError:
        raise
    except Exception as error:
        if type(teacher).__module__.startswith("lakewright."):
            raise
        raise describe_error(where, error) from error
    if not isinstance(proposal, Proposal):
        raise InputError(f"{where} gave {show(proposal)}; return a Proposal")
    candidates = tuple(delta for delta in proposal.candidates if is_of_space(delta, space))
    return msgspec.structs.replace(proposal, candidates=candidates)


def _add_rivals(
    proposal: Proposal, teacher: Teacher, ask: Callable[[Key], Proposal], key: Key, count: int, space: DesignSpace
) -> Proposal:
    """The proposal with candidates, `count` deltas in all if there are as many.

    A teacher that generates no tokens is asked again, each time in the state that the proposal left; what it then
    learned is forgotten. What lacks is the first change stretched by STRETCHES.
    """
    assert proposal.delta
    # A rule with chance gives another change for another key, for nothing; a model's next answer would cost tokens.
    deltas = [proposal.delta, *proposal.candidates]
    if not proposal.tokens:
        state = teacher.state_dict()
        for again in split_key(key, count)[1:]:
            other = ask(again).delta
            deltas += [other] if other and is_of_space(other, space) and other not in deltas else []
            teacher.load_state_dict(state)
    deltas += [stretch_delta(proposal.delta, factor, space) for factor in STRETCHES][: max(0, count - len(deltas))]
    return msgspec.structs.replace(proposal, candidates=tuple(deltas[1:count]))


def stretch_delta(delta: Delta, factor: float, space: DesignSpace) -> Delta:
    """The delta with every change `factor` times as large, within -1 .. 1 or the range of a knob if that is larger."""
    most = {name: max(1.0, column.span) for column in space.columns for name in (column.name, column.top)}
    edits = {}
    for stratum, edit in delta.edits.items():
        changes = {name: max(-most[name], min(most[name], factor * change)) for name, change in edit.changes.items()}
        edits[stratum] = msgspec.structs.replace(edit, changes=changes)
    return Delta(edits)


def list_held(forecast: Forecast | None) -> list[Stratum]:
    """The strata whose graders are in doubt, so that they get no more than the floor."""
    return [doubt.stratum for doubt in forecast.doubts or () if doubt.holds] if forecast else []


def warn_of_graders(
    evidence: Evidence, forecast: Forecast, following: Design, guard: GuardSettings, space: DesignSpace
) -> list[str]:
    """The lines about graders that may be broken.

    Args:
        evidence, forecast, space: the round's evidence and forecast, and the design space.
        following: the next design, whose shares the lines name.
        guard: the guard's settings.
    """
    word, floor = space.words.stratum, guard.least_share(len(following.strata)) + 1e-6
    answered = [Tally(part.groups.completions, part.groups.valid) for part in evidence.groups]
    silent = find_no_valid_answer([[*evidence.outcomes.values()], answered], word)
    doubts = [
        doubt.describe(word, held=following.strata[doubt.stratum][space.share.name] <= floor)
        for doubt in forecast.doubts or ()
        if doubt.stratum in following.strata
    ]
    return [silent, *doubts] if silent else doubts


class Next(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The next design, its source, and the reasons.

    source: `proposal`, as the guard left it, if no trial was held; `trial`, the proposal that it chose; `rollback`,
    the design before a stage that was rolled back; `current`, if nothing better was proposed. reasons: a
    line each of guard, trial or rollback. untried: why no trial was held, if it did not fit into `trial.share`.
    """

    design: Design
    source: Source
    reasons: list[str]
    untried: str | msgspec.UnsetType = msgspec.UNSET


def decide_next(verdict: GuardVerdict, design: Design, trial: Trial | None = None, untried: str = "") -> Next:
    """The next design after the guard's verdict and the trial of a proposal to change `design`.

    untried: why no trial was held, if it did not fit.
    """
    if trial is not None:
        chosen = trial.candidates[trial.chosen].design
        return Next(chosen, "trial" if trial.chosen else "current", [verdict.summary(), trial.summary()])
    reasons = [*([untried] if untried else []), verdict.summary()]
    return Next(
        verdict.design, "current" if verdict.design == design else "proposal", reasons, untried or msgspec.UNSET
    )


class Decision(msgspec.Struct, frozen=True):
    """A redesign: what is next, and what led to it.

    before: the design until now. evidence: what the teacher was asked about. attempts: its proposals with the guard's
    verdicts; the last one counts; empty if an earlier design is back. trial: the proposals' trial, if it was held.
    comparison: the held-out answers of this round beside the answers of the policy that it was trained from.
    rolled_back: whether validation fell; with `rollback.weights`, the trainer then restores the weights from before.
    line, short, strata: the texts of `explain` and `summary`.
    """

    next: Next
    before: Design
    evidence: Evidence
    forecast: Forecast
    attempts: list[Attempt]
    trial: Trial | None
    comparison: Comparison | None
    line: str = ""
    rolled_back: bool = False
    short: str = ""
    strata: list[str] = []

    def __repr__(self) -> str:
        return f"Decision(version {self.design.version}: {self.short})"

    @property
    def design(self) -> Design:
        """The design that the next problems are drawn from."""
        return self.next.design

    def summary(self) -> str:
        """The redesign in a short sentence: the strata that gain, those that lose, and why."""
        return self.short

    def explain(self) -> str:
        """The redesign in lines: what was proposed, what guard and trial made of it, and what was applied.

        Then for each stratum the valid answers, the expected share of valid answers, and its values before and after.
        """
        return "\n".join([self.line, *self.strata])


def decide_nothing(evidence: Evidence, forecast: Forecast) -> Decision:
    """The decision of a round without outcomes: the design stays, and nobody is asked."""
    design, line = evidence.design, f"no outcomes since version {evidence.design.version} was decided"
    following = Next(design, "current", [line])
    return Decision(
        next=following,
        before=design,
        evidence=evidence,
        forecast=forecast,
        attempts=[],
        trial=None,
        comparison=None,
        line=line,
        short=f"unchanged: {line}",
    )


def decide_again(verdicts: Iterable[GuardVerdict], design: Design, before: Next) -> Next:
    """The first accepted change of the newly trained engineer, or `before` if all its changes are refused."""
    verdict = next((verdict for verdict in verdicts if verdict.status != "refused"), None)
    if verdict is None:
        reasons = ["no answer after its training can be used", *before.reasons]
        return msgspec.structs.replace(before, reasons=reasons)
    reasons = [f"asked again after its training: {verdict.summary()}"]
    return Next(verdict.design, "current" if verdict.design == design else "proposal", reasons)


def find_delta(decision: Decision, space: DesignSpace) -> Delta | None:
    """The proposed change; if the trial preferred another proposal, that one's."""
    if not decision.attempts:
        return None
    last, following = decision.attempts[-1], decision.design
    # The history tells a teacher what was trained on. If the trial preferred a change that nobody put into words, the
    # change is derived from the two designs.
    if last.proposal.delta and following not in (decision.before, last.verdict.design):
        return derive_delta(decision.before, following.strata, PREFERRED, space)
    return last.proposal.delta


def try_rivals(
    work: TrialWork, rivals: Sequence[Design], current: Design, forecast: Forecast | None, proposed: Design
) -> Trial | None:
    """The trial of at least one rival against the current design; None if `work.unheld` says why it is not held.

    Args:
        work: rolls the problems out.
        rivals, current: the designs to compare.
        forecast: the round's forecast, if there is one.
        proposed: the original proposal.
    """
    environment, space, count = work.environment, work.environment.space, work.settings.shortlist
    chosen, priors = list(rivals[:count]), list[Worth]()
    if forecast and work.settings.prior:
        cells, mixes = environment.cells(current), [environment.cells(rival) for rival in rivals]
        found = shortlist_designs(forecast.model, cells, mixes, count, space)
        chosen, priors = [rivals[place] for place, _ in found], [worth for _, worth in found]
    work.unheld = work.explain_cost([current, *chosen])
    if work.unheld:
        return None
    leverage = {stratum: forecast.model.find_leverage(stratum, space) for stratum in current.strata} if forecast else {}
    # The place of the original proposal is passed on, because `choose_rival` prefers it in a tie.
    place = chosen.index(proposed) if proposed in chosen else None
    return try_beside_current(work, current, chosen, priors, place, leverage)


def count_held_out(problems: Sequence[InCell] | None, design: Design, environment: Environment) -> list[HeldOutCell]:
    """The cells of held-out problems, of the strata that the design draws, with their shares; by default all alike."""
    if problems is None:
        cells = environment.space.grid(design.strata)
        counts = Counter(cell for cell in cells if is_drawable(environment, cell, design))
    else:
        cells = [problem.cell for problem in problems if problem.cell.stratum in design.strata]
        # Without givens: a forecast completes cells by the givens of each design.
        counts = Counter(Cell(cell.stratum, cell.values) for cell in cells)
    found = counts if problems is None else sort_cells(counts)
    return [HeldOutCell(cell, counts[cell] / counts.total()) for cell in found]


def tally_seen(seen: SeenCells, space: DesignSpace) -> dict[Stratum, Tally]:
    """The tallies of the training groups by stratum."""
    return tally_by_stratum(((part.cell, part.tally) for part in seen.tallies), space)


def grow_older(observations: Iterable[Observation], settings: DifficultySettings) -> list[Observation]:
    """Observations one round later, for the difficulty model with these settings.

    Those that abilities no longer read are pooled by cell, so that a state does not grow with every round. They still
    count for the mean length of answers and the groups of a cell.
    """
    older = [msgspec.structs.replace(one, age=one.age + 1) for one in observations]
    if settings.model == "regression":
        return older
    old: dict[tuple[bool, bool], list[Observation]] = {}
    for one in older:
        if one.age >= ROUNDS:
            kind = one.tried, one.tokens is msgspec.UNSET
            old.setdefault(kind, []).append(msgspec.structs.replace(one, age=ROUNDS))
    recent = [one for one in older if one.age < ROUNDS]
    return [*recent, *(one for kind in sorted(old) for one in pool_observations(old[kind]))]


def observe_answers(outcomes: Mapping[Stratum, Tally] | None, design: Design, space: DesignSpace) -> list[Observation]:
    """Answers to held-out problems by cell, with the givens of a design; empty if only tallies are known."""
    if isinstance(outcomes, Outcomes) and outcomes.observations is not None:
        return list(outcomes.observations)
    answers = outcomes.answers.elements() if isinstance(outcomes, Outcomes) and outcomes.answers else ()
    return observe_held_out((space.complete_cell(cell, design), valid) for cell, valid in answers)
