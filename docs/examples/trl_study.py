"""Does the engineer pay in TRL's own trainer? `python docs/examples/trl_study.py largest studies/trl-largest`.

For each seed a small transformer that reads bytes is warmed up on reference answers. From there `GRPOTrainer` trains
it for equal generated tokens in some arms: `fixed` stays with the design that an engineer begins with, `gain` is the
default engineer with the lines of README.md, without trials, `gain-tried` has trials of any size, `gain-shares` is
`gain` that may change shares only, and `gain-default` is the engineer with all defaults. In the study `guess`, each
seed begins with a random design. Run again after a kill, it continues with the first unfinished run. Each run is a
file of runs/; results.json and the table are made from all of them.
docs/lab/grpo-of-trl.md has the analysis.
"""

import shutil
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from lakewright.core_jax.support import write_atomically
from lakewright.engineer.cells import Stratum
from lakewright.engineer.design import Design, by_stratum
from lakewright.engineer.environment import Environment
from lakewright.engineer.guard import GuardSettings
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.problems import Problem
from lakewright.engineer.start import find_start
from lakewright.engineer.tally import Tally, pool_tallies
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.loop.records.token_budget import Spent
from lakewright.experiments.studies.inference import run_paired_tests
from lakewright.experiments.studies.learning_curves import CurvePoint, average_curve, tokens_to_best
from lakewright.experiments.studies.results import Results, sum_up_arm
from lakewright.experiments.studies.results_table import tabulate_results
from lakewright.experiments.studies.run_results import RunResult, valid_by_stratum, valid_by_trait
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.trl import EngineerTasks
from lakewright.experiments.trainers.versions import FolderSettings
from lakewright.policy.codecs.problem_codec import BYTES
from lakewright.policy.codecs.settings import TextSettings
from lakewright.policy.models import load_checkpoint, save_checkpoint
from lakewright.policy.text_play import TextPlay, build_byte_policy, play_texts
from lakewright.policy.training import WarmupSettings, answer_groups, warm_up

ARMS = ("fixed", "gain", "gain-tried", "gain-shares")  # the first is what the others are compared with
SEEDS = (0, 1, 2, 3, 4)
TEST_SEED = 20261127  # apart from the seeds of warm-up, training and held-out problems
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # shares of a trait in a random design, as in the studies of the closed loop
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}<begin>"


class Study(NamedTuple):
    """What is compared. tokens: generated in a run, those for the engineer included. longest: tokens of an answer."""

    environment: str
    tokens: int
    longest: int
    rate: float  # of AdamW; it falls to 0 as the tokens are spent
    warmup: int  # steps
    problems: int = 32  # of a step of GRPO
    group: int = 8
    every: int = 10  # steps between two redesigns
    held_out: int = 200  # problems that the engineer has answered before training
    test: int = 1000  # problems of the test
    knobs: tuple[tuple[str, float], ...] = ()  # of all strata in the design to begin with, if not the usual ones
    rise: int = 1  # steps in which the rate rises
    temperature: float = 0.0  # of the answers to the test
    arms: tuple[str, ...] = ARMS
    guessed: bool = False  # whether each seed begins with a random design, as a user's guess may be

    def find_target(self, environment: Environment) -> Design:
        """The design that the warm-up, the held-out problems and the test are drawn from."""
        usual = find_start(environment)
        return usual.replace({stratum: {**row, **dict(self.knobs)} for stratum, row in usual.strata.items()})

    def find_start(self, environment: Environment, seed: int) -> Design:
        """The design that all arms of a seed begin with: the target, or with random shares and traits."""
        target = self.find_target(environment)
        if not self.guessed:
            return target
        rng, traits = np.random.default_rng(seed), [knob.name for knob in environment.space.knobs if knob.trait]
        shares = rng.dirichlet(np.ones(len(target.strata)))
        return target.replace(
            {
                stratum: {**row, **{name: float(rng.choice(PARTS)) for name in traits}, "share": float(share)}
                for share, (stratum, row) in zip(shares, target.strata.items(), strict=True)
            }
        )


PAIRS = Study(
    "docs/examples/addition.py:Addition",
    tokens=100_000,
    longest=6,
    rate=1e-4,
    warmup=600,
    problems=16,
    every=20,
    knobs=(("terms", 2),),
    rise=15,
    temperature=1.0,
    arms=("fixed", "gain-default"),
)
MIXTURE = "docs/data/studies/reasoning-gym/mixture.py:Mixture"
STUDIES = {
    "largest": Study("docs/examples/largest.py:Largest", tokens=40_000, longest=2, rate=5e-5, warmup=30),
    "sums": Study("docs/examples/addition.py:Addition", tokens=60_000, longest=6, rate=3e-5, warmup=600),
    "pairs": PAIRS,
    "guess": PAIRS._replace(guessed=True),
    "tasks": PAIRS._replace(environment=MIXTURE, longest=20, warmup=1500, knobs=()),
}


class Run(msgspec.Struct, frozen=True):
    """A finished run. solved: by its last policy of the test, a digit a problem. before: what the warm-up solved."""

    result: RunResult
    solved: str
    before: dict[Stratum, Tally]
    versions: list[str]


class Policy(NamedTuple):
    """A model, and how it is asked and judged."""

    model: PreTrainedModel
    play: TextPlay[Problem]
    environment: Environment

    def answer_test(self, study: Study, temperature: float) -> Outcomes:
        """The outcomes of an answer to each problem of the test, at a temperature; 0 is greedy."""
        problems = self.environment.draw(study.find_target(self.environment), study.test, TEST_SEED)
        with torch.random.fork_rng():
            torch.manual_seed(TEST_SEED)
            found = answer_groups(self.model, self.play, problems, temperature=temperature)
        return self.environment.tallies(problems, [answered.judged.details[0] for answered in found])


def prepare_policy(study: Study, seed: int, folder: Path) -> Policy:
    """The policy of a seed after its warm-up, which is the same for all arms."""
    environment, saved = load_environment(study.environment), folder / f"warmup-s{seed}"

    def wrap_model(model: PreTrainedModel, tokenizer: Any) -> Policy:
        text, failures = TextSettings(max_tokens=study.longest), environment.space.failures
        return Policy(model, play_texts(model, tokenizer, environment.verdicts, failures, text=text), environment)

    if not saved.exists():
        policy = wrap_model(*build_byte_policy("0.6M", seed, "cpu"))
        settings = WarmupSettings(steps=study.warmup, batch=32, matrix_rate=4e-3, other_rate=4e-3)
        problems = environment.draw(study.find_target(environment), settings.boards, seed=1000 + seed)
        model = warm_up(policy.model, policy.play, problems, [], settings, seed)
        save_checkpoint(folder / "saving", model, policy.play.tokenizer)
        (folder / "saving").rename(saved)
    return wrap_model(*load_checkpoint(saved, BYTES, device="cpu"))


class Watch(TrainerCallback):
    """Counts tokens, tests the policy every few steps, and ends a run whose tokens are spent."""

    def __init__(self, study: Study, tasks: EngineerTasks, policy: Policy) -> None:
        self.study, self.tasks, self.policy = study, tasks, policy
        self.answered, self.read, self.tokens = {"train": 0, "held_out": 0}, 0, 0
        self.curve, self.seconds, self.begun = list[CurvePoint](), 0.0, time.process_time()
        self.outcomes = self.before = Outcomes()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Tests the policy of the warm-up."""
        self.test_policy()
        self.before = self.outcomes

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Counts and tests, after the callback of the engineer."""
        self.tokens = self.count_tokens().total
        control.should_training_stop = self.tokens >= self.study.tokens
        if control.should_training_stop or state.global_step % self.study.every == 0:
            self.test_policy()

    def test_policy(self) -> None:
        """Notes the valid % of the policy on the test, whose time does not count."""
        self.seconds += time.process_time() - self.begun
        self.outcomes = self.policy.answer_test(self.study, self.study.temperature)
        self.curve.append(CurvePoint(self.tokens, 100 * pool_tallies(self.outcomes.values()).valid_rate, self.seconds))
        self.begun = time.process_time()

    def find_rate(self, step: int) -> float:
        """The learning rate of a step as a share of the highest."""
        return min(1.0, (step + 1) / self.study.rise) * max(0.0, 1 - self.tokens / self.study.tokens)

    def count_tokens(self) -> Spent:
        """The tokens of all answers: in training, to held-out problems for the engineer, and in its trials."""
        with self.tasks.folder.files.outcomes_path.open("rb") as file:
            file.seek(self.read)
            for line in map(msgspec.json.decode, file):
                self.answered[line.get("split", "train")] += line["tokens"]
            self.read = file.tell()
        trials = sum(report.spent.trials for report in self.tasks.decided)
        return Spent(self.answered["train"], 0, trials, self.answered["held_out"])


def train_run(study: Study, arm: str, seed: int, folder: Path) -> Run:
    """Trains one run from its beginning. folder: of the study."""
    policy, place = prepare_policy(study, seed, folder), folder / f"{arm}-s{seed}"
    shutil.rmtree(place, ignore_errors=True)  # what a kill left
    teacher, redesigns = arm.partition("-")[0], arm != ARMS[0]
    still = {knob.name: 0.0 for knob in policy.environment.space.knobs} if arm == "gain-shares" else {}
    trial = TrialSettings() if arm == "gain-default" else TrialSettings(enabled=arm == "gain-tried", share=0)
    settings = FolderSettings(trial=trial, guard=GuardSettings(reach=still))
    start, how = study.find_start(policy.environment, seed), dict[str, Any](settings=settings, seed=seed)
    if redesigns:
        how |= {"held_out": study.held_out, "held_out_design": study.find_target(policy.environment)}
    EngineerFolder.begin(place / "engineer", study.environment, teacher, start, **how)
    tasks = EngineerTasks(place / "engineer", every=study.every, chat=True, seed=seed)
    policy.play.tokenizer.chat_template = TEMPLATE
    watch = Watch(study, tasks, policy)
    arguments = GRPOConfig(
        str(place / "trl"),
        max_steps=study.tokens,  # never reached
        per_device_train_batch_size=study.problems * study.group,
        num_generations=study.group,
        max_completion_length=study.longest,
        learning_rate=study.rate,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        seed=seed,
    )
    optimizer = AdamW(policy.model.parameters(), study.rate, weight_decay=0.0)
    trainer = GRPOTrainer(
        policy.model,
        tasks.reward_funcs,
        arguments,
        tasks.train_dataset,
        processing_class=policy.play.tokenizer,
        callbacks=[*tasks.callbacks, watch],
        optimizers=(optimizer, LambdaLR(optimizer, watch.find_rate)),
    )
    if redesigns:
        tasks.attach(trainer)
    trainer.train()
    return Run(make_result(watch, arm, seed), watch.outcomes.valid, dict(watch.before), tasks.folder.log())


def make_result(watch: Watch, arm: str, seed: int) -> RunResult:
    """The result of a run, but for what depends on its baseline."""
    files = watch.tasks.folder.files
    versions = [files.read_version(number) for number in files.list_versions()]
    trials = [note["trial"] for version in versions for note in version.decisions if note["trial"]]
    traits = valid_by_trait(watch.outcomes)
    greedy = pool_tallies(watch.policy.answer_test(watch.study, 0.0).values()).valid_rate
    whole = pool_tallies(watch.outcomes.values())
    return RunResult(
        arm=arm,
        seed=seed,
        valid=watch.curve[-1].valid,
        gain=watch.curve[-1].valid - watch.curve[0].valid,
        forced=None,
        optimal=None,
        sizes=valid_by_stratum(watch.outcomes),
        tokens=watch.count_tokens(),
        stages=len(watch.tasks.decided),
        seconds=watch.seconds,
        tried=len(trials),
        unchanged=sum(trial["chosen"] == 0 for trial in trials),
        rolled_back=sum(report.rolled_back for report in watch.tasks.decided),
        refused=0,
        curve=watch.curve,
        drawn=[version.design.strata for version in versions],
        rates={name: 100 * tally.valid_rate for name, tally in whole.traits.items()} | {"greedy": 100 * greedy},
        traits=traits,
        along=average_curve(watch.curve, watch.study.tokens),
    )


def sum_up_study(study: Study, runs: list[Run]) -> Results:
    """The results of runs: means, paired differences by seed, and their intervals."""
    baselines = {run.result.seed: run.result.curve for run in runs if run.result.arm == ARMS[0]}
    found = [
        msgspec.structs.replace(
            run.result, to_best=tokens_to_best(run.result.curve, baselines.get(run.result.seed, []))
        )
        for run in runs
    ]
    solved = {f"{run.result.arm}-s{run.result.seed}": np.array([*map(int, run.solved)]) for run in runs}
    tables = [by_stratum(run.before) for run in runs if run.result.arm == ARMS[0]]
    before = {stratum: pool_tallies(table[stratum] for table in tables) for stratum in tables[0]}
    ends, along = (
        {arm: {run.seed: getattr(run, outcome) for run in found if run.arm == arm} for arm in study.arms}
        for outcome in ("valid", "along")
    )
    return Results(
        budget=study.tokens,
        baseline=ARMS[0],
        valid=100 * pool_tallies(before.values()).valid_rate,
        held_out=study.test,
        arms=[
            sum_up_arm([run for run in found if run.arm == arm], ARMS[0], study.tokens, solved, baselines)
            for arm in dict.fromkeys(run.arm for run in found)
        ],
        runs=found,
        missing=[f"{arm}-s{seed}" for seed in SEEDS for arm in study.arms if f"{arm}-s{seed}" not in solved],
        prediction=None,
        tests=run_paired_tests(ends, [(arm, ARMS[0]) for arm in study.arms[1:]]),
        along=run_paired_tests(along, [(arm, ARMS[0]) for arm in study.arms[1:]]),
        sizes=valid_by_stratum(before),
        traits=valid_by_trait(before),
        environment=study.environment,
    )


def main(study: Study, folder: Path) -> None:
    """Trains all runs that are not finished, seed by seed; after each seed there are results."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    runs = []
    for seed in SEEDS:
        for arm in study.arms:
            file = folder / "runs" / f"{arm}-s{seed}.json"
            if not file.exists():
                write_atomically(file, msgspec.json.format(msgspec.json.encode(train_run(study, arm, seed, folder))))
            runs.append(msgspec.json.decode(file.read_bytes(), type=Run))
            print(f"{file.stem}: {runs[-1].result.valid:.1f} % valid", flush=True)
        results = sum_up_study(study, runs)
        write_atomically(folder / "results.json", msgspec.json.format(msgspec.json.encode(results)))
    print(tabulate_results(results))


if __name__ == "__main__":
    main(STUDIES[sys.argv[1]], Path(sys.argv[2]))
