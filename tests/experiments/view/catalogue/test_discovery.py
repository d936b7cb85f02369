"""What lies under the given paths is found as soon as it is there."""

import time

import pytest

from lakewright.experiments.loop.records import RunFolder
from lakewright.experiments.view.catalogue.discovery import Catalogue, Kind, MissingError
from tests.support.models.tiny_policy import tiny_run


def test_a_run_that_was_just_begun_is_found_though_the_list_is_kept_for_a_second(tmp_path):
    catalogue = Catalogue([tmp_path])
    assert catalogue.items() == []
    with pytest.raises(MissingError, match="is not here"):
        catalogue.find(Kind.RUN, f"{tmp_path.name}/new")
    run = RunFolder(tmp_path / "new")
    run.open(tiny_run())
    run.warmup.folder.mkdir()
    time.sleep(0.1)
    assert catalogue.find(Kind.RUN, f"{tmp_path.name}/new").path == tmp_path / "new"
