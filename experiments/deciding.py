"""What a stage's evidence leads to: the teacher is asked, the guard judges, and what is proposed is tried."""

import jax

from core_jax.decoding import read_raw
from core_jax.generator import can_draw
from engineer.delta import ConfigDelta
from engineer.evidence import Evidence, read_evidence
from engineer.guard import GuardVerdict, judge
from engineer.negotiation import Attempt, negotiate
from engineer.teachers.base import decided
from engineer.teachers.registry import Tools, make_teacher
from engineer.teachers.self import Allowed
from experiments.runs import Decision, RunFolder, Stage, Trial, read
from experiments.setbacks import config_before, taken_back
from experiments.settings import RunSettings, seed_for
from experiments.trying import try_configs
from policy.models import load_checkpoint
from policy.sampling import answer_under_grammar


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
    evidence, config = read_evidence(read_raw(stage.evidence), str(stage.evidence)), stage.config()
    asked = [
        _asked(settings, folder, number, evidence, before, attempt)
        for attempt in range(settings.trial.proposals if settings.trial.enabled else 1)
    ]
    refused = [attempt for (*earlier, _), _ in asked for attempt in earlier]
    (last, state), *others = [(attempts[-1], state) for attempts, state in asked]
    further = [
        Attempt(decided(delta), judge(config, delta, settings.guard, can_draw)) for delta in last.proposal.candidates
    ]
    return Decision(
        settings.teacher, last.proposal, last.verdict, state, [*(other for other, _ in others), *further], refused
    )


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
    settings: RunSettings, folder: RunFolder, number: int, evidence: Evidence, state: dict, attempt: int
) -> tuple[list[Attempt], dict]:
    """The tries of one attempt and the teacher's state after it; each starts from the same state, by its own chance."""
    stage = folder.stage(number)
    tools = Tools(settings.evidence, lambda prompt, allowed: _ask_checkpoint(stage, prompt, allowed))
    teacher = make_teacher(settings.teacher, tools, settings.teacher_options)
    if state:
        teacher.load_state_dict(state)
    purpose = f"stage {number} teacher" + (f" attempt {attempt}" if attempt else "")
    key = jax.random.key(seed_for(settings.seed, purpose))
    tries = negotiate(teacher, evidence, stage.config(), key, settings.guard, can_draw)
    return tries, teacher.state_dict()


def _ask_checkpoint(stage: Stage, prompt: list[str], allowed: Allowed) -> list[str]:
    model, tokenizer = load_checkpoint(stage.checkpoint)
    return answer_under_grammar(model, tokenizer, prompt, allowed)
