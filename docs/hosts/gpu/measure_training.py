"""What the training of a language model costs on a GPU, phase by phase, and two short runs of it at equal tokens.

    OUT=found python docs/hosts/gpu/measure_training.py [SETTING=VALUE ...]

Parts, each in a process of its own with a time limit, which writes JSON into the folder OUT as it goes; a part that has
finished is not run again. `table`: the warm-up, sampling, updates, validation and an engineer's answer of the preset
`smollm2-gpu`, with recorded steps and, some of them, without. `engineer` and `fixed`: two runs of the preset that begin
with the same warm-up and end at the same number of tokens, one redesigned and one not. RUNS is the folder of the runs,
whose checkpoints are large; without it they are in OUT. PARTS and ITEMS choose parts with their limits and items of the
table. With `device=cpu` and smaller numbers it runs without a GPU.
"""

import functools
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import tarfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

PRESET, FOLDER = "smollm2-gpu", Path(os.environ.get("OUT", "found"))
RUNS = Path(os.environ.get("RUNS", FOLDER))  # folders of runs, whose checkpoints are large
PARTS = os.environ.get("PARTS", "table=100,engineer=100,fixed=60")  # with their limits in seconds
ITEMS = ("agreement", "warm_up", "sampling", "update", "validation", "answer", "without_recording", "estimate")
CHOSEN = os.environ.get("ITEMS", ",".join(ITEMS)).split(",")
SHORT = ["warmup.steps=400", "warmup.minutes=0.4", "stages=3", "grpo.steps=12", "trial.boards=32", "budget=400000"]
GB = 10**9


class Found:
    """Figures of a part, written at every change."""

    def __init__(self, path: Path) -> None:
        self.path, self.figures, self._begun = path, dict[str, Any](), time.perf_counter()

    @contextmanager
    def measuring(self, name: str) -> Iterator[dict[str, Any]]:
        """Figures of one item; an error is written and does not end the others."""
        import torch

        item: dict[str, Any] = {"at": round(time.perf_counter() - self._begun, 1)}
        self.figures[name] = item
        gpu = torch.cuda.is_available()
        if gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        busy = Busy() if gpu and importlib.util.find_spec("pynvml") else None
        try:
            yield item
        except Exception:  # the next items are worth measuring all the same
            item["error"] = traceback.format_exc()[-1500:]
        if busy:
            item["busy"] = busy.end()
        if gpu:
            item["allocated_GB"] = round(torch.cuda.max_memory_allocated() / GB, 2)
            item["reserved_GB"] = round(torch.cuda.max_memory_reserved() / GB, 2)
        self.path.write_text(json.dumps(self.figures, indent=1))
        print(name, json.dumps(item)[:300], flush=True)


class Busy:
    """How busy the GPU is meanwhile, percent of the time."""

    def __init__(self) -> None:
        import pynvml

        pynvml.nvmlInit()
        self._handle, self._read, self._ended = pynvml.nvmlDeviceGetHandleByIndex(0), list[int](), threading.Event()
        self._nvml = pynvml
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            self._read.append(self._nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu)

    def end(self) -> int | None:
        """The mean."""
        self._ended.set()
        self._thread.join()
        return round(sum(self._read) / len(self._read)) if self._read else None


def time_call(work: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of a call, to the end of its work on the GPU, and what it returns."""
    import torch

    begun = time.perf_counter()
    made = work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return round(time.perf_counter() - begun, 4), made


@contextmanager
def without_recording() -> Iterator[None]:
    """Steps are computed one operation after another."""
    from lakewright.policy.inference import decoders
    from lakewright.policy.training import recorded_scores

    with (
        mock.patch.object(decoders, "uses_graphs", return_value=False),
        mock.patch.object(recorded_scores, "uses_graphs", return_value=False),
    ):
        yield


class Table:
    """The items of the table, on one model that the warm-up trains a little."""

    def __init__(self, words: list[str]) -> None:
        from lakewright.core_jax.generator import generate
        from lakewright.experiments.loop.settings.lake_settings import first_boards
        from lakewright.experiments.loop.settings.run_settings import load_settings
        from lakewright.experiments.loop.training.policy_models import load_policy
        from lakewright.experiments.loop.training.trainee import make_trainee
        from lakewright.policy.training import tasks_of

        self.settings = load_settings(PRESET, words)
        self.model, self.tokenizer = load_policy(self.settings, self.settings.start)
        self.trainee = make_trainee(self.settings)
        self.play = self.trainee.make_play(self.model, self.tokenizer)
        self.tasks = tasks_of(generate(first_boards(self.settings), 0, 4000))

    def measure(self, found: Found) -> None:
        """The chosen items."""
        for name in CHOSEN:
            with found.measuring(name) as item:
                getattr(self, f"_{name}")(item)

    def _without_recording(self, item: dict[str, Any]) -> None:
        with without_recording():
            self._sampling(item, times=1)
            self._warm_up(item, steps=15)

    def _estimate(self, item: dict[str, Any]) -> None:
        import torch

        from lakewright.experiments.loop.host.estimate import estimate_of

        total = torch.cuda.mem_get_info()[1] if torch.cuda.is_available() else 80 * GB
        item |= {phase.name: round(phase.total / GB, 2) for phase in estimate_of(self.settings, total).phases}

    def _agreement(self, item: dict[str, Any]) -> None:
        """Recorded steps beside others: greedy answers, and the loss and gradients of a batch."""
        import torch

        from lakewright.policy.inference import answer_tasks
        from lakewright.policy.training.recorded_scores import WIDTH, RecordedLoss
        from lakewright.policy.training.warmup import _collate, _token_loss

        some = self.tasks[:64]
        mine = answer_tasks(self.model, self.play, some)
        with without_recording():
            others = answer_tasks(self.model, self.play, some)
        item["equal answers"] = sum(one == other for one, other in zip(mine, others, strict=True)) / len(some)
        examples = [(self.play.encode_prompt(task), self.play.encode_reference(task)) for task in some]
        batch = _collate(examples, self.tokenizer.pad_token_id, WIDTH)
        recorded = RecordedLoss(self.model, _token_loss)
        for name in ("computed", "recorded", "replayed"):
            if name == "recorded" and not torch.cuda.is_available():
                break
            loss = float(recorded.backward(*batch))
            grads = [weight.grad for weight in self.model.parameters() if weight.grad is not None]
            item[name] = [loss, float(torch.nn.utils.get_total_norm(grads))]
        self.model.zero_grad(set_to_none=True)

    def _warm_up(self, item: dict[str, Any], steps: int = 80) -> None:
        import msgspec
        import numpy as np

        from lakewright.policy.training import warm_up

        at: list[float] = []
        losses: list[float] = []

        def on_step(step: int, loss: float) -> None:
            at.append(time.perf_counter())
            losses.append(loss)

        chosen = msgspec.structs.replace(self.settings.warmup, steps=steps, minutes=None)
        seconds, _ = time_call(lambda: warm_up(self.model, self.play, self.tasks, [], chosen, 0, on_step))
        lengths = np.diff(at)[len(at) // 2 :]
        item["warm-up"] = {"steps": steps, "seconds": seconds, "a step": float(np.median(lengths))}
        item["warm-up"] |= {"mean of later steps": float(lengths.mean()), "losses": [losses[0], losses[-1]]}

    def _sampling(self, item: dict[str, Any], times: int = 4) -> None:
        from lakewright.policy.inference import sample
        from lakewright.policy.training import answer_groups

        grpo = self.settings.grpo
        prompts = [self.play.encode_prompt(task) for task in self.tasks[: grpo.prompts]]
        item["decoding"], item["answer_groups"] = [], []
        for _ in range(times):
            seconds, made = time_call(
                lambda: sample(
                    *(self.model, self.tokenizer, prompts),
                    copies=grpo.group,
                    max_new_tokens=self.settings.text.max_tokens,
                    temperature=grpo.temperature,
                    batch=self.settings.text.batch,
                    scored=False,
                )
            )
            counts = [len(answer) for answer in made.answers]
            item["decoding"].append({"seconds": seconds, "tokens": sum(counts), "steps": max(counts)})
        chosen = self.tasks[: grpo.prompts]
        for _ in range(min(times, 2)):
            seconds, groups = time_call(
                lambda: answer_groups(self.model, self.play, chosen, grpo.group, temperature=grpo.temperature)
            )
            item["answer_groups"].append({"seconds": seconds, "tokens": sum(group.tokens for group in groups)})

    def _update(self, item: dict[str, Any], steps: int = 10) -> None:
        import msgspec

        from lakewright.policy.training import rollouts, train_grpo

        grpo = msgspec.structs.replace(self.settings.grpo, steps=steps)
        sampled: list[float] = []
        logs: list[dict[str, Any]] = []
        at: list[float] = []
        plain = rollouts.Rollouts.__call__

        def timed(self: Any, slots: list[Any], trainer: Any) -> Any:
            seconds, made = time_call(lambda: plain(self, slots, trainer))
            sampled.append(seconds)
            return made

        def on_step(log: dict[str, Any]) -> None:
            at.append(time.perf_counter())
            logs.append(log)

        scratch = RUNS / "scratch"
        with mock.patch.object(rollouts.Rollouts, "__call__", timed):
            train_grpo(
                *(self.model, self.play, self.tasks[: grpo.boards], grpo), seed=0, scratch=scratch, on_step=on_step
            )
        later = [after - before for before, after in itertools.pairwise(at)]
        item |= {"steps": later, "sampling": sampled, "tokens": [log["sampled/tokens"] for log in logs]}
        item["update"] = [step - part for step, part in zip(later, sampled[1:], strict=False)]
        rates = [tokens / step for tokens, step in zip(item["tokens"][1:], later, strict=False)]
        item["tokens a second"] = sorted(rates)[len(rates) // 2] if rates else None

    def _validation(self, item: dict[str, Any]) -> None:
        from lakewright.policy.inference import answer_tasks

        for name in ("first", "again"):
            seconds, answers = time_call(lambda: answer_tasks(self.model, self.play, self.tasks[:1000]))
            judging, _ = time_call(functools.partial(self.play.judge, self.tasks[:1000], answers))
            item[name] = {"decoding": seconds, "judging": judging, "tokens": sum(map(len, answers))}

    def _answer(self, item: dict[str, Any]) -> None:
        from lakewright.engineer.teachers import answer_schema
        from lakewright.policy.inference import SchemaSettings, answer_in_json

        environment, start = self.trainee.environment, self.trainee.start
        schema = answer_schema(start.strata, environment.space, inline=False, summary=True)
        question = "A round of training has ended. Say what boards come next, and why. " * 60
        for name, reasoning in (("json", 0), ("reasoning and json", 64)):
            how = SchemaSettings(reasoning=reasoning, answer=320, temperature=0.7)
            asked = [{"role": "user", "content": question}]
            seconds, (_, tokens) = time_call(
                lambda asked=asked, how=how: answer_in_json(self.model, self.tokenizer, asked, schema, how, 0)
            )
            item[name] = {"seconds": seconds, "tokens": tokens, "ms a token": 1000 * seconds / max(tokens, 1)}


def run_preset(name: str, words: list[str], limit: float) -> int | None:
    """One of the two runs, by `measure_run.py`, and its records; its exit code, or None at the limit."""
    out = RUNS / name
    given = [*SHORT, *words]
    if name == "fixed":
        warmed = RUNS / "engineer" / "warmup" / "checkpoint"
        given += [f"start={warmed}", "warmup.steps=0", "engineer.asked_first=false"]
    teacher = ["--teacher", "fixed"] if name == "fixed" else []
    script = Path(__file__).with_name("measure_run.py")
    command = [sys.executable, str(script), str(FOLDER / f"{name}_phases.json"), "--preset", PRESET, *teacher]
    begun = time.perf_counter()
    code = run_limited([*command, "--out", str(out), *given], limit)
    found = {"code": code, "seconds": round(time.perf_counter() - begun, 1), "arguments": given} | read_run(out)
    (FOLDER / f"{name}.json").write_text(json.dumps(found, indent=1))
    pack_records()
    return code


def run_limited(command: list[str], limit: float) -> int | None:
    """The exit code of a command; None where it was ended, with all that it started, after `limit` seconds."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def read_run(out: Path) -> dict[str, Any]:
    """The valid share after each stage, and the tokens of its training."""
    found: dict[str, Any] = {}
    for place in sorted(out.glob("*/validation.json")):
        valid = json.loads(place.read_text()).get("valid", "")
        steps = [json.loads(line) for line in (place.parent / "train.jsonl").read_text().splitlines()]
        tokens = sum(step.get("sampled/tokens", 0) for step in steps)
        share = valid.count("1") / len(valid) if valid else None
        found[place.parent.name] = {"valid": share, "boards": len(valid), "steps": len(steps), "tokens": tokens}
    return found


def pack_records() -> None:
    """All of both runs but weights, in one file."""

    def leave_weights(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        large = member.name.endswith((".safetensors", "tokenizer.json", ".parquet"))
        return None if large else member

    with tarfile.open(FOLDER / "runs.tar.gz", "w:gz") as packed:
        for name in ("engineer", "fixed"):
            if (RUNS / name).exists():
                packed.add(RUNS / name, name, filter=leave_weights)


def measure_table(words: list[str]) -> int:
    """The part `table`, in this process: its exit code."""
    from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries

    prepare_libraries()
    found = Found(FOLDER / "table.json")
    with found.measuring("start"):
        table = Table(words)
    if "error" in found.figures["start"]:  # nothing can be measured without the model
        return 1
    table.measure(found)
    return 0


def main() -> int:
    """Runs the parts that are not finished, each until its limit."""
    words = sys.argv[1:]
    if any(word.startswith("-") for word in words):  # settings have no dashes
        print(__doc__)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    RUNS.mkdir(parents=True, exist_ok=True)
    if words[:1] == ["table"]:
        return measure_table(words[1:])
    for part in PARTS.split(","):
        name, limit = part.split("=")
        if (FOLDER / f"{name}.done").exists():
            continue
        begun = time.perf_counter()
        if name == "table":
            code = run_limited([sys.executable, __file__, "table", *words], float(limit))
        else:
            code = run_preset(name, words, float(limit))
        print(f"== {name}: code {code}, {time.perf_counter() - begun:.0f} s", flush=True)
        if code == 0:
            (FOLDER / f"{name}.done").touch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
