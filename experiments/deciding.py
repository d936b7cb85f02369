"""What a stage's evidence leads to: the teacher is asked, the guard judges, and what is proposed is tried."""

import numpy as np

from core_jax.config import EnvConfig
from core_jax.errors import InputError
from core_jax.generator import check_reachable
from engineer.delta import ConfigDelta
from engineer.evidence import Evidence, Round, gather
from engineer.guard import GuardVerdict, judge
from engineer.teachers.base import Proposal, decided
from engineer.teachers.registry import make_teacher
from engineer.teachers.self import Allowed
from experiments.runs import Decision, Judged, RunFolder, Stage, Trial, Validation, read
from experiments.setbacks import config_before, taken_back
from experiments.settings import RunSettings, seed_for
from experiments.trying import try_configs
from policy.models import load_checkpoint
from policy.sampling import answer_under_grammar


def gather_evidence(settings: RunSettings, folder: RunFolder, number: int) -> Evidence:
    """What the engineer is shown after stage `number`."""
    stages = [folder.stage(earlier) for earlier in range(number + 1)]
    *past, now = (Round(stage.config(), read(stage.validation, Validation).sizes) for stage in stages)
    return gather(now.config, now.outcomes, past, number, settings.stages, settings.modules)


def decide(settings: RunSettings, folder: RunFolder, number: int) -> Decision:
    """Asks the teacher, lets the guard judge; what cannot be used keeps the config and is recorded.

    After a stage that was taken back nobody is asked: the next one is drawn from the config that served before.
    """
    stage = folder.stage(number)
    before = read(folder.stage(number - 1).proposal, Decision).teacher_state if number else {}
    if rollback := taken_back(stage):
        found, config = rollback.comparison, config_before(folder, number, rollback)
        reason = f"taken back to {rollback.against}: {found.lost} boards lost, {found.gained} gained"
        verdict = GuardVerdict("accepted", [f"{reason}, p {found.p_value:.2g}"], config)
        return Decision(settings.teacher, decided(ConfigDelta({})), verdict, before)
    evidence, config = read(stage.evidence, Evidence), stage.config()
    first, *others = (
        _asked(settings, folder, number, evidence, config, before, attempt)
        for attempt in range(settings.trial.proposals if settings.trial.enabled else 1)
    )
    (proposal, state), rest = first, [Judged(other, _judged(settings, config, other)) for other, _ in others]
    return Decision(settings.teacher, proposal, _judged(settings, config, proposal), state, rest)


def try_proposals(settings: RunSettings, folder: RunFolder, number: int) -> Trial | None:
    """The trial of what was proposed after a stage against its config; None where nothing differs from it."""
    stage = folder.stage(number)
    decision = read(stage.proposal, Decision)
    configs = [stage.config()]
    for verdict in (decision.verdict, *(other.verdict for other in decision.others)):
        if verdict.config not in configs:
            configs.append(verdict.config)
    if len(configs) == 1 or taken_back(stage):
        return None
    return try_configs(settings, folder.standing(number), configs, f"stage {number} trial")


def _asked(
    settings: RunSettings,
    folder: RunFolder,
    number: int,
    evidence: Evidence,
    config: EnvConfig,
    state: dict,
    attempt: int,
) -> tuple[Proposal, dict]:
    """A proposal, and the teacher's state after it; each attempt starts from the same state, with its own chance."""
    stage = folder.stage(number)
    teacher = make_teacher(settings.teacher, lambda prompt, allowed: _ask_checkpoint(stage, prompt, allowed))
    if state:
        teacher.load_state_dict(state)
    purpose = f"stage {number} teacher" + (f" attempt {attempt}" if attempt else "")
    proposal = teacher.propose(evidence, config, np.random.default_rng(seed_for(settings.seed, purpose)))
    return proposal, teacher.state_dict()


def _ask_checkpoint(stage: Stage, prompt: list[str], allowed: Allowed) -> list[str]:
    model, tokenizer = load_checkpoint(stage.checkpoint)
    return answer_under_grammar(model, tokenizer, prompt, allowed)


def _judged(settings: RunSettings, config: EnvConfig, proposal: Proposal) -> GuardVerdict:
    """The guard's verdict, and beyond its ranges the generator's: a config whose boards cannot be found is refused."""
    if proposal.delta is None:
        return GuardVerdict("refused", [proposal.error], config)
    verdict = judge(config, proposal.delta, settings.guard)
    try:
        check_reachable(verdict.config, seed_for(settings.seed, "reachable"))
    except InputError as error:
        return GuardVerdict("refused", [str(error)], config)
    return verdict
