"""The data set of verl without verl, which only its reward manager needs: several folders, and the end of the rows."""

import importlib
import sys
import types

import pytest
from torch.utils.data import DataLoader

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import begin_engineer, record_some

MANAGER = "verl.experimental.reward_loop.reward_manager.naive"


@pytest.fixture
def dataset(monkeypatch):
    """The class of the data set."""
    parts = MANAGER.split(".")
    for end in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), types.ModuleType(parts[end - 1]))
    sys.modules["verl"].DataProto = object
    sys.modules[MANAGER].NaiveRewardManager = object
    monkeypatch.delitem(sys.modules, "lakewright.experiments.trainers.verl", raising=False)
    yield importlib.import_module("lakewright.experiments.trainers.verl").EngineerDataset
    sys.modules.pop("lakewright.experiments.trainers.verl")


@pytest.fixture
def folders(tmp_path):
    """Two folders, the second with another number of held-out problems."""
    for name, held_out in (("one", 3), ("two", 5)):
        begin_engineer(tmp_path / name, held_out=held_out)
    return str(tmp_path / "one"), str(tmp_path / "two")


def test_rows_of_several_folders_alternate_and_none_is_left_out(dataset, folders):
    rows = dataset(list(folders), None, {"seed": 1}, max_samples=6)
    told = [row["extra_info"] for row in rows]
    assert [(row["folder"], row["index"]) for row in told] == [(folders[n % 2], n // 2) for n in range(6)]
    assert [row["index"] for row in rows] == list(range(6))
    prompts = [ProblemSource(folders[n % 2], 1)[n // 2].prompt for n in range(6)]
    assert [row["raw_prompt"][0]["content"] for row in rows] == prompts
    assert len(dataset(list(folders), None, {})) == 200_000


def test_held_out_problems_of_several_folders_are_all_there(dataset, folders):
    rows = dataset([f"{folder}/held_out" for folder in folders], None, {})
    told = [(row["extra_info"]["folder"], row["extra_info"]["index"]) for row in rows]
    assert len(rows) == len(told) == 8
    assert set(told) == {(folders[0], n) for n in range(3)} | {(folders[1], n) for n in range(5)}


def test_an_iteration_over_the_rows_ends(dataset, folders):
    rows = dataset(folders[0], None, {}, max_samples=2)
    assert len(list(iter(rows))) == 2
    with pytest.raises(IndexError):
        rows[2]
    assert rows[-1]["index"] == 1
    assert rows[-1]["raw_prompt"] == rows[1]["raw_prompt"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork", "ignore:os.fork\\(\\) was called")
def test_workers_of_a_loader_read_the_same_rows_in_order(dataset, folders):
    rows = dataset(list(folders), None, {"seed": 1}, max_samples=12)
    first = rows[0]["raw_prompt"]  # the folders are open before the workers are forked
    loader = DataLoader(rows, batch_size=2, num_workers=2, timeout=60, collate_fn=list)
    read = [row for batch in loader for row in batch]
    assert [row["index"] for row in read] == list(range(12))
    assert read[0]["raw_prompt"] == first
    assert [row["raw_prompt"] for row in read] == [rows[n]["raw_prompt"] for n in range(12)], "a place has one problem"


def test_no_folder_and_the_same_folder_twice_are_refused(dataset, folders):
    with refused("data_files: none"):
        dataset([], None, {})
    with refused("data_files:", "one"):
        dataset([folders[0], folders[0]], None, {})


def test_verl_logs_each_stratum_and_why_answers_fail(dataset, folders):
    rows = dataset(f"{folders[1]}/held_out", None, {})
    strata = [problem.cell.stratum for problem in EngineerFolder(folders[1]).held_out()]
    assert [row["data_source"] for row in rows] == [f"lakewright/{stratum}" for stratum in strata]
    judge = importlib.import_module("lakewright.experiments.trainers.verl").judge_answer
    told = [
        judge("", text, "", {**rows[0]["extra_info"], "answer": at, "step": 1}) for at, text in enumerate(["?", "0"])
    ]
    assert told[0] == {"score": 0.0, "acc": 0.0, "failure/no_number": 1.0, "failure/wrong": 0.0}
    assert told[1] == {"score": 0.0, "acc": 0.0, "failure/no_number": 0.0, "failure/wrong": 1.0}


def test_a_sampler_chooses_the_rows_too(dataset, tmp_path):
    folder = begin_engineer(tmp_path / "e", teacher="fixed", sampler="signal")
    record_some(folder, ProblemSource(folder.path).take(16))
    folder.next()
    prompts = [row["raw_prompt"][0]["content"] for row in dataset(str(folder.path), None, {}, max_samples=30)]
    assert prompts == [problem.prompt for problem in ProblemSource(folder.path).take(30)]
    assert folder.status().sampling.again > 0
    begin_engineer(tmp_path / "redraw", sampler="redraw")
    with refused("sampler redraw", "roll_out"):
        dataset(str(tmp_path / "redraw"), None, {})[0]
