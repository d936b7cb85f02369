"""TRL's `environment_factory` on a folder: groups on one problem, verdicts of episodes, and the policy that plays."""

import asyncio
import contextlib
import functools
import inspect
import json
import re
import signal
import threading
import time

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from lakewright.core_jax.errors import InputError
from lakewright.engineer import Verdict
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.trl import EngineerTasks
from lakewright.experiments.trainers.trl_episodes import RolloutFactory, _forward_call
from lakewright.experiments.trainers.versions import FolderSettings
from lakewright.policy.inference import EndpointSettings
from tests.support.models.tool_calling_model import tool_calling_checkpoint
from tests.support.processes.commands import HOUSE
from tests.support.refusals import assert_names, refused
from tests.support.samples.engineer_folders import begin_engineer, read_groups
from tests.support.samples.trl_trainers import FEW_TRIED

HUNT = f"{HOUSE / 'docs' / 'examples' / 'hunt.py'}:Hunt"


class State:
    global_step = 3


@pytest.fixture
def tasks(tmp_path):
    EngineerFolder.begin(tmp_path / "e", HUNT, "random", settings=FEW_TRIED, held_out=4)
    return EngineerTasks(tmp_path / "e", every=1)


@pytest.fixture
def trainer(tasks, tmp_path, monkeypatch):
    """TRL's own trainer, tool loop and parser, with a policy that halves, and gives up when it is told a distance."""
    tokenizer = AutoTokenizer.from_pretrained(tool_calling_checkpoint())

    def say(prompt_ids):
        text = tokenizer.decode(prompt_ids)
        low, high = 1, int(re.search(r"from 1 to (\d+) with", text)[1])
        calls = re.findall(r'"number": (\d+)}}\n</tool_call>.*?<tool_response>\n(.*?)\n</', text, re.DOTALL)
        for number, told in calls:
            low = int(number) + 1 if told == "It is higher." else low
            high = int(number) - 1 if told == "It is lower." else high
        if (calls and "It is" not in calls[-1][1]) or "away" in text.split("<tool_response>")[-1]:
            return tokenizer.encode("Done.<|im_end|>")
        call = {"name": "guess", "arguments": {"number": (low + high) // 2}}
        return tokenizer.encode(f"<tool_call>\n{json.dumps(call)}\n</tool_call><|im_end|>")

    def generate_single_turn(self, prompt_ids, *_, **__):
        return [say(ids) for ids in prompt_ids], None

    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", generate_single_turn)
    few = {"max_steps": 1, "per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 4096}
    return GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(tool_calling_checkpoint()),
        tasks.reward_funcs,
        GRPOConfig(str(tmp_path / "trl"), **few, save_strategy="no", report_to="none", use_cpu=True),
        tasks.train_dataset,
        processing_class=tokenizer,
        environment_factory=tasks.environment_factory,
        callbacks=tasks.callbacks,
    )


def test_groups_play_one_problem_and_their_episodes_give_the_verdicts(tasks, trainer):
    tasks.attach(trainer)
    trainer.train()
    groups = {name: lines for name, lines in read_groups(tasks.folder.path).items() if lines[0].split == "train"}
    assert {len(lines) for lines in groups.values()} == {4}
    assert all(len({(line.version, line.key) for line in lines}) == 1 for lines in groups.values())
    lines = [line for lines in groups.values() for line in lines]
    assert all(line.valid and line.reward == 1 for line in lines if line.stratum == "way")
    assert {line.failure for line in lines if not line.valid} <= {"not_found"}
    assert all(line.tokens > 40 for line in lines)
    status = tasks.folder.status()
    assert (status.held_out, status.spent.trials > 0) == (4, True), "the policy hunts for the engineer, too"
    logged = {name: value for line in trainer.state.log_history for name, value in line.items()}
    assert (logged["engineer/way/valid"], logged["tools/failure_frequency"]) == (1.0, 0)


def test_the_policy_plays_for_the_engineer_and_answers_it_without_tools(tasks, trainer):
    tasks.attach(trainer)
    before = dict(vars(trainer))
    problems = [one for one in tasks.source.take(12) if one.cell.stratum == "way"][:3]
    groups, tokens = tasks.policy.roll_out(problems, 2, 0)
    assert [(group.key, group.valid, group.completions) for group in groups] == [(one.key, 2, 2) for one in problems]
    assert tokens > 2 * 3 * 40
    assert vars(trainer).keys() == before.keys()
    seen = []
    trainer._generate = lambda prompts: seen.append(trainer.tools) or ([[0]], [[1]], None, ["none"], None, {}, None, [])
    tasks.policy.ask([{"role": "user", "content": "from 1 to 2 with"}], {}, seed=0)
    assert (seen, len(trainer.tools)) == ([[]], 1)


def begin_rollouts(tasks, places):
    rollouts = [tasks.environment_factory() for _ in places]
    for rollout, place in zip(rollouts, places, strict=True):
        rollout.reset(prompt=[], place=place, split="train")
    return rollouts


def judge(tasks, places, rollouts):
    return tasks.judge_answers(
        [[{"role": "assistant", "content": "."}]] * len(places),
        completion_ids=[[1, 2]] * len(places),
        place=places,
        split=["train"] * len(places),
        trainer_state=State(),
        environments=rollouts,
    )


def test_a_rollout_is_used_again_and_takes_up_the_next_design(tasks):
    (rollout,) = begin_rollouts(tasks, [0])
    rollout.guess(number=tasks.source[0].data["number"])
    assert rollout.verdict == Verdict(True, 1.0)
    assert judge(tasks, [0], [rollout]) == [1.0]
    assert tasks.folder.next(step=1).version == 1
    rollout.reset(place=1, split="train")
    assert rollout.verdict == Verdict(False, 0.0, "no_guess")
    assert [tasks.source[place].version for place in (0, 1)] == [0, 1]


def test_an_episode_that_does_not_end_is_a_line_and_other_groups_are_recorded(tasks):
    rollouts = begin_rollouts(tasks, [4, 4, 5, 5])
    rollouts[3]._episode.verdict = lambda: None
    with pytest.raises(InputError, match=r"place 5: Hunting.verdict: on 'Find .*: the episode did not end; return a"):
        judge(tasks, [4, 4, 5, 5], rollouts)
    (lines,) = read_groups(tasks.folder.path).values()
    assert [line.failure for line in lines] == ["no_guess"] * 2


@pytest.mark.parametrize("hang", ["loop", "wait", "wait in a coroutine"])
def test_a_call_that_hangs_is_a_line_and_other_groups_are_recorded(tasks, hang):
    def guess(number):
        while hang == "loop":
            with contextlib.suppress(Exception):
                raise ValueError
        time.sleep(60)

    async def guess_later(self, number: int):
        """Waits.

        Args:
            number: The guess.
        """
        await asyncio.sleep(60)

    rollouts = begin_rollouts(tasks, [4, 4, 5, 5])
    tasks.environment_factory.seconds = 0.05
    handler, _ = signal.getsignal(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 100)
    with refused("Hunting.guess: on 'Find", "took over 0.05 s", "tool_seconds"):
        if hang == "wait in a coroutine":
            rollouts[3]._episode.guess = functools.partial(guess_later, None)
            asyncio.run(_forward_call("guess", guess_later)(rollouts[3], number=1))
        else:
            rollouts[3]._episode.guess = guess
            rollouts[3].guess(number=1)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert 90 < signal.setitimer(signal.ITIMER_REAL, 0)[0] < 100, "an alarm of the program's own goes on"
    with pytest.raises(InputError, match=r"place 5: Hunting.guess: on 'Find .* took over 0.05 s"):
        judge(tasks, [4, 4, 5, 5], rollouts)
    (lines,) = read_groups(tasks.folder.path).values()
    assert [line.failure for line in lines] == ["no_guess"] * 2
    rollouts[3].reset(place=6)
    rollouts[3]._episode.reset = lambda problem: time.sleep(60)
    with refused("Hunting.reset", "took over 0.05 s"):
        rollouts[3].reset(place=7)


def test_members_of_a_group_with_different_problems_are_a_line_and_nothing_is_lost(tasks, trainer):
    tasks.held_out = []
    tasks.callbacks[0].on_train_begin(trainer.args, trainer.state, trainer.control)
    with refused(2, 3):
        judge(tasks, [1, 1, 1, 1, 2, 2, 2, 3], begin_rollouts(tasks, [1, 1, 1, 1, 2, 2, 2, 3]))
    assert sorted(len(lines) for lines in read_groups(tasks.folder.path).values()) == [1, 3, 4]


def test_members_that_begin_differently_are_a_line(tasks):
    first, second = begin_rollouts(tasks, [7, 7])
    second._episode.reset = lambda problem: "Begin!"
    first.reset(place=7)
    with refused("place 7:", "None", "'Begin!'"):
        second.reset(place=7)
    second.reset(place=8)


def test_a_tool_may_be_a_coroutine(tasks, trainer):
    async def guess(self, number: int) -> str:
        """Guesses.

        Args:
            number: The guess.
        """
        self.found = True
        return "Found."

    kind = type("Later", (type(tasks.folder.environment.make_episode()),), {"guess": guess})
    environment = type("Hunts", (type(tasks.folder.environment),), {"make_episode": lambda self: kind()})()
    factory = RolloutFactory(environment, tasks.find_problem)
    rollout = factory()
    rollout.reset(place=0)
    with pytest.raises(TimeoutError), rollout._limit("guess", awaited=True):
        raise TimeoutError  # the tool's own
    assert inspect.iscoroutinefunction(rollout.guess), "as TRL asks"
    assert asyncio.run(rollout.guess(number=1)) == "Found."
    assert rollout.verdict.valid
    with factory.play_here(trainer, [[{"role": "user", "content": "?"}]], [tasks.source[0]]):
        assert (trainer._sync_tool_dicts, list(trainer._async_tool_dicts[0])) == ([{}], ["guess"])


@pytest.mark.parametrize("call", ["guess", "reset", "verdict", "make_episode"])
def test_a_call_that_does_not_return_is_named_while_it_runs(tasks, caplog, call):
    factory = RolloutFactory(tasks.folder.environment, tasks.find_problem, late=0.01)
    rollout, running = factory(), threading.active_count()
    rollout.reset(place=0)

    def list_lines():
        return [line for line in caplog.messages if f".{call}" in line]

    def wait_until_named(*_, **__):
        while not list_lines():  # ends only because it is named
            time.sleep(0.001)

    owner = factory.environment if call == "make_episode" else rollout._episode
    setattr(owner, call, wait_until_named)
    with contextlib.suppress(InputError):  # the verdict is none
        {
            "guess": lambda: rollout.guess(number=1),
            "reset": lambda: rollout.reset(place=0),
            "verdict": lambda: rollout.verdict,
            "make_episode": factory.make_episode,
        }[call]()
    (line,) = list_lines()
    assert_names(line, "Hunt" if call == "make_episode" else "place 0: Hunting", call, "0.01 s", "tool_seconds=60")
    while threading.active_count() > running:
        time.sleep(0.001)


def test_what_a_trainer_lacks_is_a_line(tasks, tmp_path):
    with refused("environment_factory=tasks.environment_factory"):
        judge(tasks, [0], None)
    with refused("tool_seconds", 0):
        EngineerTasks(tasks.folder.path, tool_seconds=0)
    with refused("place", "tasks.train_dataset"):
        tasks.environment_factory().reset(prompt=[])
    assert EngineerTasks(begin_engineer(tmp_path / "sums").path).environment_factory is None


def test_what_only_judges_texts_refuses_several_turns_and_nothing_is_recorded(tasks, tmp_path):
    with refused("Hunt", "several turns"):
        tasks.recorder.record(tasks.source[0], ["7"])
    assert read_groups(tasks.folder.path) == {}
    settings = FolderSettings(rollouts=EndpointSettings(url="http://localhost:1/v1", model="m"))
    with refused("rollouts.url", "Hunt"):
        EngineerFolder.begin(tmp_path / "other", HUNT, settings=settings)
