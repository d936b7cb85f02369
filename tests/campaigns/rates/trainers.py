"""The cost of an engineer's folder for a trainer: problems drawn and outcomes recorded, beside a step of TRL.

python -m tests.campaigns trainers

The step is one of a small random model with TRL's GRPO trainer on this machine. That of a language model on GPUs takes
longer, and what is drawn and recorded for it the same.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict
from lakewright.experiments.bench.lake import describe_machine
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource

STEPS = ((8, 8), (64, 8), (256, 16))  # problems, and answers to each
REPEATS = 20
OUTCOMES = 100_000  # of a folder that was in use for long
NEW = 64  # outcomes since its last decision
MODEL = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 64}
TRAINED = {"max_steps": 8, "per_device_train_batch_size": 64, "num_generations": 8, "max_completion_length": 64}


class Digits(Environment):
    """Digits to be said again: drawn and judged in microseconds, so that what is measured is the folder."""

    space = DesignSpace(
        (1, 2, 3, 4), (Knob(name="top", low=1, high=9, step=1, reach=1, whole=True),), ranked=True, failures=("no",)
    )

    def make(self, cell: Any, rng: Any) -> Problem:
        """Digits of a cell."""
        text = "".join(str(rng.randint(0, cell["top"])) for _ in range(cell.stratum))
        return Problem(f"{text}=", text)

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """Valid if they are the same."""
        return Verdict(answer == problem.answer, float(answer == problem.answer), "no" * (answer != problem.answer))


class StepCost(msgspec.Struct, frozen=True):
    """Median milliseconds of a step.

    outcomes: that the folder had before.
    """

    problems: int
    answers: int
    outcomes: int
    draw: float
    record: float


class TrlStep(msgspec.Struct, frozen=True):
    """A step of TRL: problems, answers to each, parameters of the model, and median seconds.

    folder_seconds: what of a step draws problems and records outcomes.
    """

    problems: int
    answers: int
    parameters: int
    seconds: float
    folder_seconds: float

    @property
    def share(self) -> float:
        """The share of a step that drawing and recording take."""
        return self.folder_seconds / self.seconds


class TrainersBench(msgspec.Struct, frozen=True):
    """first_decision, decision: seconds of one on OUTCOMES outcomes that are all new, and of one on NEW after these."""

    machine: dict[str, Any]
    costs: list[StepCost]
    trl: TrlStep
    first_decision: float
    decision: float


def measure_rates() -> TrainersBench:
    """Measures all of it in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as name:
        fresh, used = _begin_folder(Path(name) / "fresh"), _begin_folder(Path(name) / "used")
        costs = [_measure_step(fresh, *step) for step in STEPS]
        _fill_folder(used, OUTCOMES)
        costs += [_measure_step(used, *step, outcomes=OUTCOMES) for step in STEPS]
        first = _measure_decision(used)
        decisions = []
        for _ in range(3):
            _fill_folder(used, NEW)
            decisions.append(_measure_decision(used))
        trl = _measure_trl(Path(name) / "trl")
        return TrainersBench(describe_machine(), costs, trl, first, statistics.median(decisions))


def _begin_folder(path: Path) -> Path:
    return EngineerFolder.begin(path, f"{__name__}:Digits", "fixed").path


def _fill_folder(path: Path, outcomes: int) -> None:
    source, recorder = ProblemSource(path, seed=1), OutcomeRecorder(path)
    for problem in source.take(outcomes // 16):
        recorder.record(problem, [problem.answer] * 16, tokens=[9] * 16)


def _measure_decision(path: Path) -> float:
    begun = time.perf_counter()
    EngineerFolder(path).next()
    return time.perf_counter() - begun


def _measure_step(path: Path, problems: int, answers: int, outcomes: int = 0) -> StepCost:
    source, recorder = ProblemSource(path), OutcomeRecorder(path)
    drawing, recording = [], []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        drawn = source.take(problems)
        drawing.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        for problem in drawn:
            recorder.record(problem, [problem.answer] * answers, tokens=[9] * answers)
        recording.append(time.perf_counter() - begun)
    return StepCost(problems, answers, outcomes, 1000 * statistics.median(drawing), 1000 * statistics.median(recording))


def _measure_trl(path: Path) -> TrlStep:
    """Trains for a few steps, with the clock at what TRL calls of the folder."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, PrinterCallback, Qwen3Config, Qwen3ForCausalLM, set_seed
    from trl import GRPOConfig, GRPOTrainer

    from lakewright.experiments.trainers.trl import EngineerTasks
    from lakewright.experiments.trainers.trl_texts import RowMaker

    words = {letter: place for place, letter in enumerate("0123456789=.")}
    core = Tokenizer(models.BPE(words, []))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=".", pad_token=".", padding_side="left")
    set_seed(0)
    model = Qwen3ForCausalLM(
        Qwen3Config(vocab_size=len(words), num_key_value_heads=2, eos_token_id=11, pad_token_id=11, **MODEL)
    )
    tasks = EngineerTasks(_begin_folder(path / "engineer"), every=TRAINED["max_steps"] + 1)
    spent: list[float] = []
    rows = tasks.train_dataset.with_transform(_time_calls(RowMaker(tasks.source, tasks.chat), spent))
    judge = _time_calls(tasks.judge_answers, spent)
    arguments = GRPOConfig(
        str(path / "trl"),
        **TRAINED,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
    )
    trainer = GRPOTrainer(model, judge, arguments, rows, processing_class=tokenizer, callbacks=tasks.callbacks)
    trainer.remove_callback(PrinterCallback)  # the table alone is printed
    trainer.train()
    steps = [row["step_time"] for row in trainer.state.log_history if "step_time" in row]
    answers = TRAINED["num_generations"]
    return TrlStep(
        problems=TRAINED["per_device_train_batch_size"] // answers,
        answers=answers,
        parameters=model.num_parameters(),
        seconds=statistics.median(steps),
        folder_seconds=sum(spent) / len(steps),
    )


def _time_calls(call: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """The function, whose seconds are added to a list."""

    def timed(*given: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        found = call(*given, **named)
        spent.append(time.perf_counter() - begun)
        return found

    return timed


def format_table(bench: TrainersBench) -> str:
    """The benchmark as Markdown."""
    head = ("problems", "answers to each", "outcomes before", "draw, ms", "record, ms", "together, ms")
    costs = [
        (
            str(cost.problems),
            str(cost.answers),
            f"{cost.outcomes:,}",
            f"{cost.draw:.2f}",
            f"{cost.record:.2f}",
            f"{cost.draw + cost.record:.2f}",
        )
        for cost in bench.costs
    ]
    step = bench.trl
    trl = (
        f"a step of TRL, {step.problems} problems with {step.answers} answers each, a model of {step.parameters:,} "
        f"parameters: {step.seconds:.2f} s, of which "
        f"{1000 * step.folder_seconds:.2f} ms ({step.share:.2%}) draw and record"
    )
    about = ", ".join(f"{name} {value}" for name, value in bench.machine.items())
    reading = (
        f"a decision on {NEW} new outcomes after {OUTCOMES:,} takes {bench.decision:.2f} s; "
        f"on all of them, had they not been read before, {bench.first_decision:.1f} s"
    )
    return "\n".join([about, "", *format_markdown(head, costs), "", f"- {trl}", f"- {reading}"])
