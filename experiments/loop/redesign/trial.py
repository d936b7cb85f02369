"""The trial of a stage's proposals: its policy is rolled out on a few boards of each, and of the current config."""

from collections.abc import Sequence
from itertools import islice

from core_jax.config import EnvConfig
from core_jax.generator import Stratum, generate
from core_jax.rows import rows_of
from engineer.trial import Signal, best, boards_to_try, signal_of, strata_of, tried
from experiments.loop.records import Stage, Trial
from experiments.loop.settings import RunSettings, seed_for
from experiments.loop.training import load_policy
from experiments.runtime import progress
from policy.codecs import codec_for
from policy.tasks import Task, task_of
from policy.training import roll_out


def try_configs(settings: RunSettings, policy: Stage, configs: Sequence[EnvConfig], purpose: str) -> Trial:
    """The signal of each config for a policy, and the place of the best; chance comes from the seed and `purpose`."""
    wanted = boards_to_try(configs, settings.trial, settings.teams)
    sources = {stratum: config for config in configs for stratum in strata_of(config, settings.teams)}
    seed = seed_for(settings.seed, purpose)
    with progress("trial boards", sum(wanted.values()), "boards") as bar:
        boards = {stratum: _boards(sources[stratum], stratum, seed, count) for stratum, count in wanted.items()}
        bar.update(sum(wanted.values()))
    signals, tokens = _rolled_out(settings, policy, boards, seed)
    candidates = [tried(config, signals, settings.teams) for config in configs]
    return Trial(candidates, best(candidates), tokens)


def _boards(config: EnvConfig, stratum: Stratum, seed: int, count: int) -> list[Task]:
    hole_ratio = config.sizes[stratum.size].hole_ratio
    single = EnvConfig.single(stratum.size, stratum.agents, hole_ratio, float(stratum.wait))
    return [task_of(row) for row in rows_of(generate(single, seed, count), single)]


def _rolled_out(
    settings: RunSettings, policy: Stage, boards: dict[Stratum, list[Task]], seed: int
) -> tuple[dict[Stratum, Signal], int]:
    model, tokenizer = load_policy(settings, policy.checkpoint)
    samples, tasks = settings.trial.samples, [task for part in boards.values() for task in part]
    with progress("trial", len(tasks) * samples, "plans") as bar:
        groups, tokens = roll_out(
            model,
            tokenizer,
            tasks,
            samples,
            settings.reward,
            horizon=settings.horizon,
            codec=codec_for(settings.codec, tokenizer, settings.text),
            temperature=settings.grpo.temperature,
            seed=seed,
            on_progress=bar.update,
        )
    remaining = iter(groups)
    return {stratum: signal_of(islice(remaining, len(part))) for stratum, part in boards.items()}, tokens
