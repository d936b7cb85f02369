"""What lies under the given paths is found as soon as it is there."""

import os
import time

import pytest

from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Kind, MissingError
from tests.support.models.tiny_policy import tiny_run
from tests.support.refusals import refused


def test_a_run_that_was_just_begun_is_found_though_the_list_is_kept_for_a_second(tmp_path):
    catalogue = Catalogue([tmp_path])
    assert catalogue.items() == []
    with pytest.raises(MissingError, match="not found"):
        catalogue.find(Kind.RUN, f"{tmp_path.name}/new")
    run = RunFolder(tmp_path / "new")
    run.open(tiny_run())
    run.warmup.folder.mkdir()
    time.sleep(0.1)
    assert catalogue.find(Kind.RUN, f"{tmp_path.name}/new").path == tmp_path / "new"


def test_a_file_that_holds_nothing_to_look_at_is_refused(tmp_path):
    for name, remedy in (
        ("a.map", "lakewright convert"),
        ("b.scen", "lakewright convert"),
        ("c.csv", "choose a folder"),
    ):
        (tmp_path / name).touch()
        with refused(name, ".jsonl or .parquet", remedy):
            Catalogue([tmp_path / name])


def test_a_pipe_is_no_file_of_boards(tmp_path):
    os.mkfifo(tmp_path / "boards.jsonl")
    assert Catalogue([tmp_path]).items() == []
    with refused(".jsonl", ".parquet"):
        Catalogue([tmp_path / "boards.jsonl"])
