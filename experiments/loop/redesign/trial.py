"""The trial of a stage's proposals: its policy is rolled out on a few boards of each, and of the current config."""

from collections.abc import Sequence

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import Stratum, generate
from lakewright.core_jax.rows import rows_of
from lakewright.engineer.difficulty import Worth
from lakewright.engineer.trial import (
    Lead,
    StratumTrial,
    boards_by_round,
    boards_to_try,
    choose_rival,
    lead_of,
    strata_of,
    tried,
)
from lakewright.experiments.loop.records import Stage, Trial
from lakewright.experiments.loop.settings import RunSettings, seed_for
from lakewright.experiments.loop.training import load_policy
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import codec_for
from lakewright.policy.tasks import Task, task_of
from lakewright.policy.training import roll_out


def try_configs(settings: RunSettings, policy: Stage, configs: Sequence[EnvConfig], purpose: str) -> Trial:
    """The signal of each config for a policy on all the boards of a trial, and the place of the best.

    Chance comes from the seed and `purpose`.
    """
    work = _Work(settings, policy, configs, purpose)
    work.roll_out_on(configs, settings.trial.boards)
    candidates = [tried(config, work.signals(), settings.teams, settings.objective) for config in configs]
    chosen = max(range(len(configs)), key=lambda place: (candidates[place].score, -place))
    return Trial(candidates, chosen, work.tokens, strata=list(work.strata.values()))


def try_beside_current(
    settings: RunSettings,
    policy: Stage,
    current: EnvConfig,
    rivals: Sequence[EnvConfig],
    priors: Sequence[Worth],
    purpose: str,
    proposed: int | None = None,
) -> Trial:
    """The current config and its rivals by successive halving: after each round the worse half of the rivals leaves.

    `choose_rival` decides between the one that stays to the end and the current config.
    proposed: the place among the rivals of the proposal as it was made, where it is tried. priors: what the difficulty
    model expects of each rival beyond the current config; none where it has no say.
    """
    work = _Work(settings, policy, [current, *rivals], purpose)
    places, leads = list(range(len(rivals))), [_no_lead() for _ in rivals]
    for boards in boards_by_round(settings.trial.boards, len(rivals)):
        work.roll_out_on([current, *(rivals[place] for place in places)], boards)
        for place in places:
            prior = priors[place] if priors else None
            leads[place] = lead_of(rivals[place], current, work.values(), prior, settings.teams)
        order = sorted(places, key=lambda place: -leads[place].mean)
        places = order[: (len(order) + 1) // 2]
    chosen = choose_rival(leads, places[0], proposed)
    candidates = [tried(config, work.signals(), settings.teams, settings.objective) for config in (current, *rivals)]
    return Trial(
        candidates,
        0 if chosen is None else chosen + 1,
        work.tokens,
        strata=list(work.strata.values()),
        leads=[_no_lead(), *leads],
    )


def leads_over(
    settings: RunSettings, policy: Stage, current: EnvConfig, rivals: Sequence[EnvConfig], purpose: str
) -> list[Lead]:
    """What rollouts on all the boards of a trial say of each rival beside the current config; none leaves early."""
    configs = [current, *rivals]
    work = _Work(settings, policy, configs, purpose)
    work.roll_out_on(configs, settings.trial.boards)
    return [lead_of(rival, current, work.values(), None, settings.teams) for rival in rivals]


def _no_lead() -> Lead:
    return Lead(0.0, 0.0, 0.0, 0.0, 0.0, 0.5)


class _Work:
    """The strata rolled out so far, shared by all configs, and what that cost."""

    def __init__(self, settings: RunSettings, policy: Stage, configs: Sequence[EnvConfig], purpose: str) -> None:
        self.settings, self.policy, self.purpose = settings, policy, purpose
        self.sources = {stratum: config for config in configs for stratum in strata_of(config, settings.teams)}
        self.strata: dict[Stratum, StratumTrial] = {}
        self.tokens = self.rounds = 0

    def signals(self) -> dict:
        return {stratum: part.signal() for stratum, part in self.strata.items()}

    def values(self) -> dict:
        return {stratum: part.values(self.settings.objective) for stratum, part in self.strata.items()}

    def roll_out_on(self, configs: Sequence[EnvConfig], boards: int) -> None:
        """Rolls out on what these configs lack of `boards` boards each."""
        trial = msgspec.structs.replace(self.settings.trial, boards=boards)
        wanted = boards_to_try(configs, trial, self.settings.teams)
        lacking = {s: count - len(self._valid(s)) for s, count in wanted.items() if count > len(self._valid(s))}
        if not lacking:
            return
        with progress("trial boards", sum(lacking.values()), "boards") as bar:
            drawn = {stratum: self._boards(stratum, count) for stratum, count in lacking.items()}
            bar.update(sum(lacking.values()))
        valid = iter(self._rolled_out([task for part in drawn.values() for task in part]))
        for stratum, part in drawn.items():
            found = [*self._valid(stratum), *(next(valid) for _ in part)]
            self.strata[stratum] = StratumTrial(stratum, trial.samples, found)

    def _valid(self, stratum: Stratum) -> list[int]:
        return self.strata[stratum].valid if stratum in self.strata else []

    def _boards(self, stratum: Stratum, count: int) -> list[Task]:
        hole_ratio = self.sources[stratum].sizes[stratum.size].hole_ratio
        single = EnvConfig.single(stratum.size, stratum.agents, hole_ratio, float(stratum.wait))
        seed = seed_for(self.settings.seed, self.purpose)
        drawn = generate(single, seed, count, first=len(self._valid(stratum)))
        return [task_of(row) for row in rows_of(drawn, single)]

    def _rolled_out(self, tasks: list[Task]) -> list[int]:
        """How many plans are valid on each board."""
        settings = self.settings
        model, tokenizer = load_policy(settings, self.policy.onward)
        with progress("trial", len(tasks) * settings.trial.samples, "plans") as bar:
            codec = codec_for(settings.codec, tokenizer, settings.text)
            groups, tokens = roll_out(
                model,
                BoardPlay(codec, settings.horizon, settings.reward),
                tasks,
                settings.trial.samples,
                temperature=settings.grpo.temperature,
                seed=seed_for(settings.seed, f"{self.purpose} round {self.rounds}"),
                on_progress=bar.update,
            )
        self.rounds += 1
        self.tokens += tokens
        return [group.valid for group in groups]
