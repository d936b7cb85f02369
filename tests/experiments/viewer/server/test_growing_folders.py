"""The viewer on folders that are being written, half written, of another version, or deleted."""

from lakewright.core_jax.support import listed
from tests.support.samples.finished_run import begin, finish
from tests.support.servers.viewer_client import client, page


def test_plans_of_a_group_are_shown_while_the_stage_is_trained(tmp_path):
    run = finish(tmp_path / "run")
    stage = run.stage(1)
    for log in (stage.groups, stage.rollouts):
        log.rename(log.with_name(f".{log.name}.part"))
    with stage.rollouts.with_name(".rollouts.jsonl.part").open("ab") as growing:
        growing.write(b'{"board":"4f","answ')
    stage.done.unlink()
    assert "Plan 4 of 4" in page(client(tmp_path / "run"), "/board/run/stage-1/0/run")


def test_a_half_written_record_is_reported_on_the_page(tmp_path):
    run = finish(tmp_path / "run")
    whole = run.stage(1).proposal.read_bytes()
    with listed(run.stage(1).proposal):
        run.stage(1).proposal.write_bytes(whole[: len(whole) // 2])
    reply = client(tmp_path / "run").get("/run/run")
    assert reply.status_code == 422
    assert "proposal.json: not JSON" in reply.text


def test_a_run_of_another_version_is_reported_on_its_page_and_on_the_first_one(tmp_path):
    run = finish(tmp_path / "run")
    with listed(run.config):
        run.config.write_text('{"format": 99, "settings": {}}')
    site = client(tmp_path)
    assert "format is 99" in page(site, "/")
    assert "format is 99" in site.get(f"/run/{tmp_path.name}/run").text


def test_a_run_that_is_deleted_while_it_is_shown_is_reported_on_the_page(tmp_path):
    import shutil

    finish(tmp_path / "run")
    site = client(tmp_path)
    page(site, f"/run/{tmp_path.name}/run")
    shutil.rmtree(tmp_path / "run")
    reply = site.get(f"/run/{tmp_path.name}/run")
    assert reply.status_code in (404, 422)
    assert "Traceback" not in reply.text


def test_a_run_that_grows_is_shown_as_it_grows(tmp_path):
    run = begin(tmp_path / "run")
    site = client(tmp_path / "run")
    assert "Nothing is finished yet" in page(site, "/run/run")
    run.warmup.folder.mkdir()
    log = run.warmup.folder / ".train.jsonl.part"
    log.write_bytes(b'{"step": 1}\n{"step": 2}\n{"st')
    found = page(site, "/run/run")
    assert "training, step 2 of" in found
    assert "data-live" in found


def test_a_stage_is_there_before_it_is_finished(tmp_path):
    run = finish(tmp_path / "run")
    run.stage(1).done.unlink()
    run.stage(1).validation.unlink()
    found = page(client(tmp_path / "run"), "/stage/1/run")
    assert "Not validated yet" in found
