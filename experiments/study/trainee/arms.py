"""One arm of the study of the trainee: trained in its minutes, then measured on the held-out boards."""

import shutil
import time
from pathlib import Path
from typing import Any

import msgspec

from lakewright.experiments.loop.records import read, write
from lakewright.experiments.loop.settings import RunSettings, seed_for
from lakewright.experiments.resumable.line_logs import line_log
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.experiments.study.trainee.records import ARMS, Part, StudySettings


def run_arm(settings: StudySettings, seed: int, arm: str, place: Path, held_out: dict[str, list]) -> Part:
    """Trains one arm, unless its checkpoint exists, and evaluates it."""
    from lakewright.experiments.loop.training import load_policy
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.codecs import TokensCodec
    from lakewright.policy.evaluation import evaluate, outcomes_by_size

    if not (place / "trained.json").exists():
        seconds, steps, waited = _train(settings, seed, arm, place)
        write(place / "trained.json", Part(seconds, steps, waited, {}))
    model, tokenizer = load_policy(settings.run, place / "checkpoint")
    play, outcomes = BoardPlay(TokensCodec(tokenizer), settings.run.horizon), {}
    for kind, tasks in held_out.items():
        with progress(f"{kind} boards", len(tasks), "boards") as bar:
            verdicts, _ = evaluate(model, play, tasks, on_progress=bar.update)
        outcomes[kind] = outcomes_by_size(tasks, verdicts)
    return msgspec.structs.replace(read(place / "trained.json", Part), outcomes=outcomes)


def _train(settings: StudySettings, seed: int, arm: str, place: Path) -> tuple[float, int, float]:
    """Trains and saves a checkpoint: seconds, steps, and seconds spent waiting for boards."""
    from lakewright.experiments.loop.training import load_policy
    from lakewright.experiments.runtime.free_cores import FreeCores
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.codecs import TokensCodec, build_tokenizer
    from lakewright.policy.models import build_model, save_checkpoint
    from lakewright.policy.training import BoardStream, train_grpo, warm_up, with_hole_ratios

    run = settings.run
    env = run.env if arm == "grpo" else run.warmup_env
    purpose = f"study {seed} {arm}"
    if arm == "warmup":
        tokenizer = build_tokenizer()
        model = build_model(run.model, tokenizer, seed_for(run.seed, f"{purpose} model"), run.device)
    else:
        model, tokenizer = load_policy(run, place.parent / "warmup" / "checkpoint")
    play = BoardPlay(TokensCodec(tokenizer), run.horizon, run.reward)
    steps, cores = 0, FreeCores()
    stream = BoardStream(with_hole_ratios(env, run.warmup.hole_ratios), seed_for(run.seed, f"{purpose} boards"))
    with stream, progress(ARMS[arm], None, "steps") as bar, line_log(place / "train.jsonl") as log:
        begun = time.monotonic()

        def on_step(figures: dict[str, Any]) -> None:
            nonlocal steps
            steps += 1
            bar.update()
            log({"seconds": round(time.monotonic() - begun, 2), **figures})
            cores.adapt()

        if arm == "grpo":
            model = train_grpo(
                *(model, play, stream, _same_minutes(settings)),
                seed=seed_for(run.seed, purpose),
                scratch=place / ".scratch",
                on_step=on_step,
            )
        else:
            how = run.warmup if arm == "warmup" else _continued(settings)
            on_warmup_step = lambda step, loss: on_step({"step": step, "loss": loss})  # noqa: E731
            model = warm_up(model, play, stream, [], how, seed_for(run.seed, purpose), on_warmup_step)
        seconds = time.monotonic() - begun
    shutil.rmtree(place / ".scratch", ignore_errors=True)
    shutil.rmtree(place / "checkpoint", ignore_errors=True)  # of a study killed between checkpoint and trained.json
    save_checkpoint(place / "checkpoint", model, tokenizer)
    return seconds, steps, stream.waited


def _minutes(run: RunSettings) -> float | None:
    """The minutes of each arm after the warm-up: those of all stages of a run."""
    return run.grpo.minutes and run.stages * run.grpo.minutes


def _same_minutes(settings: StudySettings) -> Any:
    run = settings.run
    steps = sum(run.grpo.of_stage(number).steps for number in range(run.stages))
    return msgspec.structs.replace(run.grpo, steps=steps, first_steps=None, minutes=_minutes(run))


def _continued(settings: StudySettings) -> Any:
    warmup = settings.run.warmup
    rates = {name: settings.sft_rate * getattr(warmup, name) for name in ("matrix_rate", "other_rate")}
    return msgspec.structs.replace(warmup, minutes=_minutes(settings.run), **rates)
