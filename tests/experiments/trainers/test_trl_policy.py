"""TRL's own generation serves the engineer: trials on the policy under training, and its answers as the teacher."""

import copy
import inspect
import json
import subprocess
import sys

import pytest
import torch
from transformers import Trainer, TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from trl import GRPOTrainer

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import strip_thoughts
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.reports import DecisionTokens
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.trl import EngineerTasks, find_checkpoint, resume_training
from lakewright.experiments.trainers.trl_texts import read_completion_text
from lakewright.experiments.trainers.versions import FolderSettings
from tests.policy.codecs.test_problem_codec import marking_tokenizer
from tests.support.models.small_language_model import language
from tests.support.processes.commands import HOUSE, surroundings
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, read_groups, record_some, state_of
from tests.support.samples.trl_trainers import FEW_TRIED, LARGEST, make_trainer


@pytest.fixture
def folder(tmp_path):
    return begin_engineer(tmp_path / "e", teacher="random", settings=FEW_TRIED)


def generate_only(trainer, reply):
    """Has the trainer say what `reply` makes of each prompt."""

    def generate(prompts):
        texts = [reply(prompt) for prompt in prompts]
        chat = not isinstance(prompts[0], str)
        completions = [[{"role": "assistant", "content": text}] for text in texts] if chat else texts
        return [[0]] * len(texts), [[1] * len(text) for text in texts], None, completions, None, {}, None, []

    trainer._generate = generate


def test_proposals_are_tried_on_the_policy_before_one_is_a_version(folder, tmp_path):
    tasks = EngineerTasks(folder.path, every=2)
    trainer = make_trainer(tasks, tmp_path / "trl")
    tasks.attach(trainer)
    trainer.train()
    versions = [folder.files.read_version(number) for number in folder.files.list_versions()]
    trials = [decision["trial"] for version in versions for decision in version.decisions]
    assert len(trials) == len(tasks.decided) == 2
    for trial in trials:
        assert len(trial["candidates"]) >= 2, "rivals, beside the present design"
        assert all(cell["answers"] == 2 for cell in trial["cells"])
        assert 0 < trial["tokens"] <= 2 * 2 * sum(len(cell["valid"]) for cell in trial["cells"])
    spent = [report.spent for report in tasks.decided]
    assert spent == [DecisionTokens(0, trial["tokens"]) for trial in trials]
    assert folder.status().spent == DecisionTokens(0, sum(trial["tokens"] for trial in trials))
    assert len(read_groups(folder.path)) == 8, "answers of trials are no outcomes of training"
    logged = [name for line in trainer.state.log_history for name in line]
    assert {"engineer/signal", "engineer/tokens_without_signal"} <= set(logged), "where a tracker gets them"
    assert {name for name in logged if name.endswith("/out_of_reach")} <= {
        f"engineer/{n}/out_of_reach" for n in range(6)
    }


def test_a_decision_reads_the_evaluation_of_its_own_step(tmp_path):
    folder = begin_engineer(tmp_path / "e", teacher="fixed", held_out=2)
    tasks = EngineerTasks(folder.path, every=2)
    often = {"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 8, "eval_on_start": True}
    trainer = make_trainer(tasks, tmp_path / "trl", max_steps=3, **often)
    trainer.train()
    read = [(report.counts.answers, report.counts.held_out) for report in tasks.decided]
    assert read == [(0, 8), (16, 16)], "before training, and after the second evaluation; the third waits"
    (note,) = folder.files.read_newest().decisions[-1:]
    assert note["evidence"]["outcomes"], "what the policy answered after these two steps"
    trainer.evaluate()
    assert len(tasks.decided) == 2, "an evaluation of one's own decides nothing"
    assert folder.files.read_newest().step == 2


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork", "ignore:os.fork\\(\\) was called")
def test_the_trainer_may_load_its_rows_in_workers(folder, tmp_path):
    tasks = EngineerTasks(folder.path, every=2)
    make_trainer(tasks, tmp_path / "trl", dataloader_num_workers=2).train()
    groups = read_groups(folder.path)
    assert len(groups) == 8, "two groups a step"
    source = ProblemSource(folder.path)
    pinned = filter(None, map(source.find_pinned, range(100_000)))
    keys = {problem.key for problem in pinned}
    assert {line.key for lines in groups.values() for line in lines} <= keys, (
        "the problems of the places that the workers asked for"
    )


def test_a_trial_counts_the_policys_own_answers(tmp_path):
    folder = EngineerFolder.begin(tmp_path / "e", LARGEST, "random", settings=FEW_TRIED)
    tasks = EngineerTasks(folder.path)
    trainer = make_trainer(tasks, tmp_path / "trl")
    generate_only(trainer, lambda prompt: max(prompt[:-1]) if len(prompt) < 5 else "none")
    tasks.attach(trainer)
    record_some(folder, tasks.source.take(8))
    tasks.decide(1)
    (decision,) = folder.files.read_version(folder.files.newest()).decisions
    valid = {cell["cell"][0]: set(cell["valid"]) for cell in decision["trial"]["cells"]}
    assert valid == {2: {2}, 3: {2}, 4: {0}, 5: {0}}


def test_a_sampler_chooses_the_rows_and_one_that_has_the_policy_answer_before_is_refused(tmp_path):
    folder = begin_engineer(tmp_path / "e", teacher="fixed", sampler="signal")
    record_some(folder, EngineerTasks(folder.path).source.take(16))
    folder.next()
    rows = EngineerTasks(folder.path).train_dataset[:30]
    assert rows["prompt"] == [problem.prompt for problem in ProblemSource(folder.path).take(30)]
    assert folder.status().sampling.again > 0
    with refused("sampler redraw", "roll_out", "rollouts"):
        EngineerTasks(begin_engineer(tmp_path / "redraw", sampler="redraw").path)


def test_training_goes_on_as_if_nothing_had_been_generated(folder, tmp_path):
    tasks = EngineerTasks(folder.path)
    trainer = make_trainer(tasks, tmp_path / "trl")
    trainer._metrics["train"]["reward"].append(0.5)
    tasks.attach(trainer)
    before = torch.get_rng_state(), copy.deepcopy(trainer._metrics), trainer.generation_config.max_new_tokens
    problems = tasks.source.take(5)
    groups, tokens = tasks.policy.roll_out(problems, 3, 0)
    assert [group.key for group in groups] == [problem.key for problem in problems]
    assert ({group.completions for group in groups}, 0 < tokens <= 5 * 3 * 2) == ({3}, True)
    assert tasks.policy.roll_out(problems, 3, 0) == (groups, tokens), "the same chance at the same step and turn"
    tasks.policy.answer_tokens = 7
    assert tasks.policy.ask([{"role": "user", "content": "?"}], {}, 1).tokens <= 7
    after = torch.get_rng_state(), trainer._metrics, trainer.generation_config.max_new_tokens
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
    assert trainer.state.num_input_tokens_seen == 0


def test_a_server_that_samples_for_the_trainer_is_asked_for_whole_groups(folder, tmp_path):
    tasks = EngineerTasks(folder.path)
    trainer = make_trainer(tasks, tmp_path / "trl")
    asked = []
    generate_only(trainer, lambda prompt: asked.append(prompt) or "1")
    trainer.use_vllm, trainer.vllm_mode = True, "server"
    trainer.vllm_generation = type("Generation", (), {"max_completion_length": 2})()
    tasks.attach(trainer)
    problems = tasks.source.take(3)
    groups, _ = tasks.policy.roll_out(problems, 3, 0)
    assert asked == [problem.prompt for problem in problems for _ in range(trainer.num_generations)]
    assert {group.completions for group in groups} == {3}


ANSWER = {"edits": {"2": {"share": 0.05, "terms": -1, "carry": 0, "reason": "too hard"}}}


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize(
    ("reply", "told"),
    [(f"They fail. ANSWER: {json.dumps(ANSWER)}", "2 share +0.05, terms -1 (too hard)"), ("", "not JSON")],
    ids=["an answer", "nothing"],
)
def test_the_policy_under_training_may_be_the_engineer(tmp_path, chat, reply, told):
    folder = begin_engineer(tmp_path / "e", teacher="self", settings=FolderSettings(trial=TrialSettings(enabled=False)))
    tasks = EngineerTasks(folder.path, chat=chat)
    trainer = make_trainer(tasks, tmp_path / "trl")
    asked = []
    generate_only(trainer, lambda prompt: asked.append(prompt) or reply)
    tasks.attach(trainer)
    record_some(folder, tasks.source.take(8))
    tasks.decide(1)
    (report,) = tasks.decided
    assert told in report.line
    assert report.spent == DecisionTokens(engineer=len(reply) * len(asked))
    assert len(asked) == 1 or not reply, "what cannot be used is asked for again"
    assert (asked[0][0]["role"] == "system") if chat else asked[0].startswith("[system]")


def test_only_the_trainer_can_ask_the_policy_under_training(tmp_path):
    folder = begin_engineer(tmp_path / "e", teacher="self")
    record_some(folder, EngineerTasks(folder.path).source.take(2))
    with pytest.raises(InputError, match=r"^teacher self .*EngineerTasks\.attach"):
        folder.next()
    assert folder.status().pending == 8
    tasks = EngineerTasks(folder.path)
    with refused("answer_tokens", 0):
        tasks.attach(make_trainer(tasks, tmp_path / "trl"), answer_tokens=0)


def test_training_resumes_from_the_newest_whole_checkpoint_and_ends_once(folder, tmp_path):
    tasks, out = EngineerTasks(folder.path), tmp_path / "trl"
    assert find_checkpoint(out) is None
    resume_training(make_trainer(tasks, out, save_strategy="steps", save_steps=1, max_steps=2))
    for cut in ("", "{"):  # a kill before the state is written, and within
        (out / "checkpoint-3").mkdir(exist_ok=True)
        (out / "checkpoint-3" / "model.safetensors").touch()
        (out / "checkpoint-3" / "trainer_state.json").write_text(cut)
        assert find_checkpoint(out) == out / "checkpoint-2"
    ended = state_of(folder.path)
    again = make_trainer(tasks, out, save_strategy="steps", save_steps=1, max_steps=2)
    resume_training(again)
    assert again.state.global_step == 2
    assert state_of(folder.path) == ended
    resume_training(make_trainer(tasks, out, save_strategy="steps", save_steps=1, max_steps=3))
    assert len(read_groups(folder.path)) == 6


TWO = """
import sys
from pathlib import Path
from lakewright.experiments.trainers.trl import EngineerTasks, find_checkpoint, resume_training
from tests.support.samples.trl_trainers import make_trainer
folder = Path(sys.argv[1])
tasks = EngineerTasks(folder, every=2)
trainer = make_trainer(tasks, folder / "trl", per_device_train_batch_size=4)
tasks.attach(trainer)
trainer.train()
"""


@pytest.mark.deep
def test_two_processes_of_trl_generate_a_trial_together(folder, tmp_path):
    (tmp_path / "two.py").write_text(TWO)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    program = [*launch, str(tmp_path / "two.py"), str(folder.path)]
    done = subprocess.run(
        program, capture_output=True, text=True, env=surroundings(), cwd=HOUSE, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    versions = [folder.files.read_version(number) for number in folder.files.list_versions()]
    trials = [decision["trial"] for version in versions for decision in version.decisions]
    assert len(trials) == 2
    assert all(trial["tokens"] > 0 for trial in trials)
    groups = read_groups(folder.path)
    assert (len(groups), {len(lines) for lines in groups.values()}) == (8, {4})
    assert all(len({(line.version, line.key) for line in lines}) == 1 for lines in groups.values())


def test_marks_of_thoughts_that_are_special_tokens_are_read_from_the_tokens():
    tokenizer = marking_tokenizer("[THINK]", "[/THINK]", ("[THINK]", "[/THINK]"))
    ids = [*tokenizer.encode("[THINK]41 perhaps", add_special_tokens=False), tokenizer.eos_token_id]
    told = tokenizer.decode(ids, skip_special_tokens=True)
    assert told == "41 perhaps", "as TRL tells it"
    for completion in (told, [{"role": "assistant", "content": told}]):
        assert strip_thoughts(read_completion_text(completion, ids, tokenizer)) == ""
    assert read_completion_text("46", language().encode("46"), language()) == "46"
    assert (
        read_completion_text([{"role": "assistant", "content": "46"}, {"role": "tool", "content": "1"}], ids, tokenizer)
        == "46"
    )


# What the adapter uses of TRL and transformers though neither promises it, from TRL 1.0 and transformers 4.57 on: the
# first parameters of each function as it is called, and where it is called.
PRIVATE = {
    "GRPOTrainer._generate": (GRPOTrainer._generate, ("self", "prompts"), "TrainedPolicy._generate_share"),
    "Trainer._load_from_checkpoint": (
        Trainer._load_from_checkpoint,
        ("self", "resume_from_checkpoint"),
        "resume_training",
    ),
    "TrainerState.load_from_json": (TrainerState.load_from_json, ("json_path",), "resume_training"),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_an_internal_of_the_trainer_takes_what_the_adapter_passes(name):
    function, parameters, ours = PRIVATE[name]
    taken = tuple(inspect.signature(function).parameters)
    assert taken[: len(parameters)] == parameters, f"{name} has changed; see {ours} in experiments/trainers"


def test_the_trainer_has_what_the_adapter_reads_and_sets(folder, tmp_path):
    trainer = make_trainer(EngineerTasks(folder.path), tmp_path / "trl")
    assert set(trainer._metrics) == {"train", "eval"}, "_leave_as_it_is restores them"
    assert (trainer.use_vllm, trainer.num_generations) == (False, 4)
    assert trainer.num_generations_eval == 4
    assert trainer.generation_config.max_new_tokens == 2, "_limit_tokens sets it"
    assert trainer.state.num_input_tokens_seen == 0
    assert trainer.args.steps_per_generation >= 1
    _, ids, _, completions, *_ = trainer._generate(["1+1="])
    assert (len(ids), len(completions)) == (1, 1)
    assert isinstance(completions[0], str)
    assert TRAINER_STATE_NAME == "trainer_state.json"
