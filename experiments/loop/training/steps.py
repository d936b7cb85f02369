"""The steps of a run: each makes one file or folder of it."""

import gc
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np
import torch
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from core_jax.config import EnvConfig, with_teams
from core_jax.errors import InputError
from core_jax.generator import can_draw_all, generate, generate_in_turn
from core_jax.results import Group
from core_jax.rows import Row, plan_of, read_all, rows_of, write_rows
from core_jax.support import replacing
from core_jax.types import FAILURE_NAMES, Failure, Verdict
from engineer.evidence import ENGINEER_TOKENS
from engineer.synthetic_evidence import synthetic_examples
from experiments.loop.records import Example, Stage, Validation, write
from experiments.loop.settings import RunSettings, launch_stage, seed_for
from experiments.loop.training.policies import load_policy
from experiments.loop.training.stage_boards import keep_boards
from experiments.runtime import FreeCores, progress
from policy.checkpoints import build_model, save_checkpoint
from policy.codecs import build_tokenizer, codec_for, token_ids
from policy.evaluation import evaluate, outcomes_by_size
from policy.tasks import Task, task_of
from policy.training import BoardStream, rank_and_processes, tasks_of, train_grpo, with_hole_ratios
from policy.training import warm_up as learn_plans

EXAMPLES = 6  # boards of a validation kept to look at, of each kind: valid plans with a wait, and failures
SYNTHETIC = 4000  # made-up evidence with answers, to teach the form of a delta


def held_out_set(settings: RunSettings, path: Path) -> list[Row]:
    """The boards of every validation, made once."""
    if not path.exists():
        chosen, cells = settings.validation, _held_out_cells(settings)
        rows = []
        with progress("held-out boards", len(cells) * chosen.boards, "boards") as bar:
            for config in cells:
                ((size, cell),) = config.sizes.items()
                seed = seed_for(chosen.seed, f"held-out {size} {cell.hole_ratio} {cell.wait_ratio}")
                rows += rows_of(generate(config, seed, chosen.boards, bar.update), config)
        write_rows(path, rows)
    return read_all(path)


def _held_out_cells(settings: RunSettings) -> list[EnvConfig]:
    """A config for each team, size, hole ratio and wait ratio; with teams, without those that cannot be drawn."""
    chosen = settings.validation
    cells = [
        EnvConfig.single(size, team.agents, hole, wait)
        for team in with_teams(settings.env, settings.teams)
        for size in team.sizes
        for hole in chosen.hole_ratios
        for wait in chosen.wait_ratios
    ]
    if settings.teams:
        cells = [cell for cell in cells if can_draw_all(cell)]
    for agents in settings.teams:
        if all(cell.agents != agents for cell in cells):
            raise InputError(f"validation: no boards for {agents} agents can be drawn at its ratios; give it others")
    return cells


def warm_up(settings: RunSettings, warmup: Stage, held_out: list[Row]) -> None:
    """Supervised learning of certified plans, and, in tokens, of the form of an engineer's answer."""
    if not warmup.checkpoint.exists():
        model, tokenizer = _first_model(settings)
        codec = codec_for(settings.codec, tokenizer, settings.text)
        extra = _engineer_examples(settings, tokenizer) if settings.codec == "tokens" else []
        cores = FreeCores()
        with (
            _warmup_boards(settings) as tasks,
            progress("warm-up", settings.warmup.steps, "steps") as bar,
            _log(warmup.train_log) as log,
        ):

            def on_step(step: int, loss: float) -> None:
                bar.update()
                log({"step": step, "loss": loss})
                cores.adapt()

            seed = seed_for(settings.seed, "warm-up")
            if settings.warmup.steps:
                model = learn_plans(model, tokenizer, tasks, extra, settings.warmup, seed, on_step, codec)
        save_checkpoint(warmup.checkpoint, model, tokenizer)
    if not warmup.validation.exists():
        validate(settings, warmup, held_out)


def _first_model(settings: RunSettings) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model that the run starts from, or one of random weights."""
    if settings.start:
        return load_policy(settings, settings.start)
    tokenizer = build_tokenizer(ENGINEER_TOKENS)
    return build_model(settings.model, tokenizer, seed_for(settings.seed, "model"), settings.device), tokenizer


@contextmanager
def _warmup_boards(settings: RunSettings) -> Iterator[list[Task] | BoardStream]:
    """A fixed set, or boards drawn while training."""
    seed, boards = seed_for(settings.seed, "warm-up boards"), settings.warmup.boards
    if not settings.warmup.steps:
        yield []
    elif settings.warmup.fresh:
        configs = with_hole_ratios(settings.warmup_env, settings.warmup.hole_ratios)
        with BoardStream(configs, seed, teams=settings.teams) as stream:
            yield stream
    else:
        with progress("warm-up boards", boards, "boards") as bar:
            made = generate_in_turn(with_teams(settings.warmup_env, settings.teams), seed, boards, bar.update)
        yield tasks_of(*made)


def _engineer_examples(settings: RunSettings, tokenizer: PreTrainedTokenizerFast) -> list[tuple[list[int], list[int]]]:
    rng = np.random.default_rng(seed_for(settings.seed, "synthetic evidence"))
    pairs = synthetic_examples(SYNTHETIC, settings.env, settings.stages, rng)
    return [(token_ids(tokenizer, prompt), token_ids(tokenizer, answer)) for prompt, answer in pairs]


def train(settings: RunSettings, stage: Stage, previous: Stage, number: int, tokens: float = math.inf) -> None:
    """GRPO from the previous checkpoint until `tokens` are generated; interrupted, it starts over from there."""
    if settings.launch.elsewhere:
        _free_accelerator()
        with progress("GRPO", settings.grpo.steps, "steps") as bar:
            log = stage.scratch / "launch.log"
            steps_done = partial(_count_lines, stage.train_log.with_name(f".{stage.train_log.name}.part"))
            launch_stage(
                settings.launch,
                stage.folder.parent,
                number,
                previous.onward,
                tokens,
                log,
                lambda: bar.update(steps_done() - bar.n),
            )
    else:
        train_here(settings, stage, previous.onward, number, tokens)


def _free_accelerator() -> None:
    """Gives back what models of this process left on the GPU: those to be launched need it."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def train_here(settings: RunSettings, stage: Stage, previous: Path, number: int, tokens: float) -> None:
    """The same in this process, which may be one of several; the first keeps what comes of it.

    Of several processes, groups.jsonl tells of the boards of the first.
    """
    rank, processes = rank_and_processes()
    device = "cpu" if processes > 1 else settings.device  # a trainer of several processes places the weights itself
    model, tokenizer = load_policy(settings, previous, device)
    # Where the reporters that write files put them.
    os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(stage.folder / "tensorboard"))
    cores = FreeCores()
    spent = 0
    with (
        _stage_boards(settings, stage, number) as tasks,
        progress("GRPO", settings.grpo.steps, "steps") if not rank else nullcontext(tqdm(disable=True)) as bar,
        _log(stage.train_log) if not rank else nullcontext(lambda figures: None) as log,
        _log(stage.groups) if not rank else nullcontext(lambda figures: None) as log_group,
    ):

        def on_step(figures: dict[str, Any]) -> bool:
            nonlocal spent
            figures["sampled/tokens"] *= processes  # TRL logs the mean of the processes
            spent += round(figures["sampled/tokens"])
            bar.update()
            bar.set_postfix(reward=f"{figures['reward']:.2f}", valid=f"{figures['valid']:.2f}")
            log(figures)
            cores.adapt()
            return spent >= tokens

        def on_groups(groups: list[Group]) -> None:
            for group in groups:
                log_group(msgspec.structs.asdict(group))

        model = train_grpo(
            model,
            tokenizer,
            tasks,
            settings.grpo,
            settings.reward,
            horizon=settings.horizon,
            seed=seed_for(settings.seed, f"stage {number} GRPO"),
            scratch=stage.scratch,
            on_step=on_step,
            on_groups=on_groups,
            codec=codec_for(settings.codec, tokenizer, settings.text),
        )
    if not rank:
        if isinstance(tasks, BoardStream):
            keep_boards(settings, stage, tasks.taken)
        save_checkpoint(stage.checkpoint, model, tokenizer)


@contextmanager
def _stage_boards(settings: RunSettings, stage: Stage, number: int) -> Iterator[list[Task] | BoardStream]:
    """Those of the stage's file, or boards drawn while training."""
    if settings.grpo.fresh:
        rank, _ = rank_and_processes()
        purpose = f"stage {number} boards" + f" of process {rank}" * (rank > 0)
        seed = seed_for(settings.seed, purpose)
        with BoardStream((stage.config(),), seed, kept=True, teams=settings.teams) as stream:
            yield stream
    else:
        yield [task_of(row) for row in read_all(stage.boards)]


def validate(settings: RunSettings, stage: Stage, held_out: list[Row]) -> None:
    """Greedy plans for the held-out set."""
    model, tokenizer = load_policy(settings, stage.checkpoint)
    codec = codec_for(settings.codec, tokenizer, settings.text)
    tasks = [task_of(row) for row in held_out]
    with progress("validation", len(tasks), "boards") as bar:
        verdicts, plans = evaluate(
            model, tokenizer, tasks, horizon=settings.horizon, codec=codec, on_progress=bar.update
        )
    shown = _examples(held_out, verdicts, plans)
    forced = np.flatnonzero([task.wait_required for task in tasks])
    waiting = jax.tree.map(lambda field: np.asarray(field)[forced], verdicts)
    of_forced = outcomes_by_size([tasks[i] for i in forced], waiting)
    valid = "".join("01"[int(failure == Failure.NONE)] for failure in np.asarray(verdicts.failure))
    write(stage.validation, Validation(outcomes_by_size(tasks, verdicts), shown, of_forced, valid))


def _examples(rows: list[Row], verdicts: Verdict, plans: np.ndarray) -> list[Example]:
    """Valid plans on boards that force a wait, and the failures, each spread over the set."""
    failure = np.asarray(verdicts.failure)
    forced = np.array([row.wait_required for row in rows])
    valid = np.flatnonzero((failure == Failure.NONE) & forced)
    failed = np.flatnonzero(failure > Failure.PARSE_ERROR)
    return [
        _example(rows[i], plans[i], failure[i], int(verdicts.agent[i]), int(verdicts.step[i]))
        for i in [*_spread(valid), *_spread(failed)]
    ]


def _example(row: Row, plan: np.ndarray, failure: int, agent: int, step: int) -> Example:
    return Example(row, plan_of(plan[: row.agents]), FAILURE_NAMES[failure], agent, step)


def _spread(places: np.ndarray) -> np.ndarray:
    """At most EXAMPLES of `places`, evenly over their range."""
    return places[np.linspace(0, len(places) - 1, min(EXAMPLES, len(places))).astype(int)]


@contextmanager
def _log(path: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields a function that adds a line of JSON; the file takes its place once all is written."""
    with replacing(path) as beside, open(beside, "wb", buffering=0) as lines:

        def add(figures: dict[str, Any]) -> None:
            lines.write(msgspec.json.encode(figures) + b"\n")

        yield add
