"""Studies in miniature: one warm-up, one budget, every arm; killed anywhere they resume."""

import json
import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from lakewright.core_jax.rows import fingerprint, read_all
from lakewright.core_jax.support import listed, read_config, write_atomically
from lakewright.engineer.tally import pool_tallies
from lakewright.experiments.cli import main
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.studies import runner as studying
from lakewright.experiments.studies import study as study_module
from lakewright.experiments.studies.inference import correlate_ranks
from lakewright.experiments.studies.learning_curves import CurvePoint
from lakewright.experiments.studies.plot import curves_svg
from lakewright.experiments.studies.results import Results, results_of
from lakewright.experiments.studies.results_table import tabulate_results
from lakewright.experiments.studies.run_results import last_policy
from lakewright.experiments.studies.runner import run_study
from lakewright.experiments.studies.study import Plan, StudyFolder, plan_study
from lakewright.experiments.studies.trial_checks import TrialCheck, reliability_of
from tests.support.machines.power_cuts import PowerCutError, cut_power
from tests.support.processes.commands import assert_refused
from tests.support.refusals import refused
from tests.support.samples.tiny_runs import files, quick, state

SPEC = Path(__file__).with_name("study.toml")
RUNS = ("fixed-s0", "fixed-s1", "random-s0")


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> tuple[StudyFolder, Results]:
    """The study that nobody disturbed."""
    out = tmp_path_factory.mktemp("study") / "study"
    with quick():
        results, failures = run_study(SPEC, out)
    assert failures == {}
    return StudyFolder(out), results


def finished(folder: Path) -> dict:
    """Bytes and time of the files of every part that counts."""
    parts = [file.parent for file in folder.rglob("done.json") if ".part/" not in str(file)]
    return {f"{part}/{name}": content for part in parts for name, content in state(part).items()}


def weights(run: RunFolder) -> bytes:
    return (run.warmup.checkpoint / "model.safetensors").read_bytes()


def test_all_runs_begin_with_one_warm_up_and_are_validated_on_the_same_boards(study):
    folder, _ = study
    runs = [RunFolder(folder.folder / "runs" / name) for name in RUNS]
    assert {weights(run) for run in runs} == {weights(folder.start)}
    assert {run.validation.read_bytes() for run in runs} == {folder.start.validation.read_bytes()}


def test_the_results_are_read_back_as_they_were_written(study):
    folder, results = study
    assert read_config(folder.results, Results) == results


def test_every_run_is_in_the_results_and_every_arm_next_to_the_baseline(study):
    _, results = study
    assert [f"{run.arm}-s{run.seed}" for run in results.runs] == list(RUNS)
    fixed, random = results.arms
    assert (fixed.seeds, fixed.against, random.seeds) == (2, None, 1)
    assert random.against.seeds == 1
    assert random.against.points == pytest.approx(results.runs[2].valid - results.runs[0].valid)
    assert all(run.tokens.total >= results.budget or run.stages == 2 for run in results.runs)
    assert results.missing == []
    assert all(len(run.drawn) == run.stages for run in results.runs)


def test_the_table_has_a_line_for_each_arm_and_the_picture_its_name(study):
    folder, results = study
    assert folder.table.read_text() == f"{tabulate_results(results)}\n"
    assert sorted(line.split()[0] for line in tabulate_results(results).splitlines()[1:3]) == ["fixed", "random"]
    *_, sizes, warm_up, fixed, random = tabulate_results(results).splitlines()
    assert [sizes.split()[:2], warm_up.split()[0]] == [["wait", "forced"], "warm-up"]
    assert {fixed.split()[0], random.split()[0]} == {"fixed", "random"}
    assert "random (1)" in folder.plot.read_text()
    assert json.loads(folder.results.read_text())["budget"] == 300


def test_the_table_says_what_the_proposals_of_an_engineer_earned_before_and_after_each_training(study):
    _, results = study
    earned = [[{"reward": 1.0}, {"reward": 3.0}], [{"reward": -2.0}, {"reward": 0.5}]]
    random = [msgspec.structs.replace(run, engineer=earned) for run in results.runs if run.arm == "random"]
    longer = msgspec.structs.replace(random[0], engineer=[*reversed(earned), earned[0]])
    runs = [run for run in results.runs if run.arm != "random"]
    lines = tabulate_results(msgspec.structs.replace(results, runs=[*runs, *random, longer])).splitlines()
    assert [line for line in lines if ": rewards" in line] == [
        "random: rewards before each training -0.50 -0.50",
        "random: rewards after each training +1.75 +1.75",
    ]


def test_of_many_unfinished_runs_the_table_names_a_few(study):
    _, results = study
    waiting = msgspec.structs.replace(results, missing=[f"sec-s{seed}" for seed in range(20)])
    assert tabulate_results(waiting).endswith("not finished: " + ", ".join(waiting.missing[:8]) + " and 12 more")


def test_curves_of_many_arms_have_no_ranges_that_would_hide_each_other(study):
    _, results = study
    assert curves_svg(results).count("<polygon") == 2, "the arms fixed and random"
    assert "<polygon" not in curves_svg(results, ["fixed", "random"] * 3)
    many = curves_svg(msgspec.structs.replace(results, arms=results.arms * 5))
    assert "fixed (2)" in many
    assert "random (1)" not in many, "of many arms, those of most seeds are drawn"


def test_every_run_has_its_curve_over_the_tokens_generated(study):
    folder, results = study
    for run in results.runs:
        assert len(run.curve) == 1 + run.stages
        begun = pool_tallies(read_record(folder.start.warmup.validation, Validation).outcomes.values())
        first = CurvePoint(0, 100 * begun.valid_rate, 0.0)
        assert run.curve[0] == first, "it begins on the boards that it goes on with"
        assert [point.tokens for point in run.curve] == sorted({point.tokens for point in run.curve}), run.arm
        end = last_policy(RunFolder(folder.folder / "runs" / f"{run.arm}-s{run.seed}"))
        outcomes = pool_tallies(read_record(end.validation, Validation).outcomes.values())
        assert run.curve[-1].valid == pytest.approx(100 * outcomes.valid_rate)
        assert run.curve[-1].tokens <= run.tokens.total
    assert "fixed (2)" in folder.curves.read_text()


def test_the_last_policy_of_every_run_is_judged_on_boards_that_no_run_has_seen(study):
    folder, results = study
    boards, known = read_all(folder.test_boards), read_all(folder.start.validation)
    assert results.held_out == len(boards) == 3 * 4
    assert not set(map(fingerprint, known)) >= set(map(fingerprint, boards)), "the test is the held-out set"
    for run in results.runs:
        path = folder.folder / "runs" / f"{run.arm}-s{run.seed}" / "test.json"
        tested, answers = read_record(path, Validation), path.with_name("test_answers.jsonl").read_bytes()
        assert len(tested.valid) == answers.count(b"\n") == len(boards)
        assert run.valid == pytest.approx(100 * tested.valid.count("1") / len(boards))


def test_a_study_without_a_test_is_judged_on_the_held_out_set(study):
    folder, results = study
    raw = json.loads(folder.plan.read_text())
    raw["spec"]["test"] = None
    plan = msgspec.convert(raw, Plan, str_keys=True)
    found = results_of(plan, folder)
    assert found.held_out == len(read_all(folder.start.validation)) != results.held_out


def test_results_only_sums_up_what_is_finished_and_runs_nothing(study, tmp_path, capsys):
    part = tmp_path / "study"
    shutil.copytree(study[0].folder, part)
    (part / "runs" / "random-s0" / "stage_00" / "done.json").unlink()
    assert main(["study", str(SPEC), "--out", str(part), "--results-only", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["missing"] == ["random-s0"]
    assert [run["arm"] for run in found["runs"]] == ["fixed", "fixed"]
    assert not (part / "runs" / "random-s0" / "stage_00" / "done.json").exists()
    assert main(["study", str(SPEC), "--out", str(tmp_path / "none"), "--results-only"]) == 2
    assert "holds no study" in capsys.readouterr().err


def test_trials_are_checked_on_more_boards_and_a_check_resumes(study, tmp_path, capsys):
    part = tmp_path / "study"
    shutil.copytree(study[0].folder, part)
    with quick():
        assert main(["study", "check-trials", str(part), "--count", "1", "--boards", "24", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["comparisons"] == 1
    (kept,) = (part / "trial_checks").glob("*.json")
    check = json.loads(kept.read_text())
    assert (check["run"], check["boards"]) == ("random-s0", 24)
    before = kept.stat().st_mtime_ns
    assert main(["study", "check-trials", str(part), "--count", "1", "--boards", "24"]) == 0
    assert kept.stat().st_mtime_ns == before, "a check that was there is made again"
    assert "1 comparisons" in capsys.readouterr().out
    assert main(["study", "check-trials", str(part), "--count", "1", "--boards", "25"]) == 2
    assert "was made with --boards 24, not 25" in capsys.readouterr().err
    assert main(["study", "check-trials", str(part), "--count", "9"]) == 2
    assert "trials so far; give --count" in capsys.readouterr().err


def test_the_reliability_of_trials_is_that_of_hand_made_checks():
    checks = [TrialCheck("a-s0", 0, 0.9, 0.1, 0.1, 800), TrialCheck("a-s1", 0, 0.9, 0.1, -0.1, 800)]
    checks += [TrialCheck("a-s2", 0, 0.2, -0.1, -0.1, 800)]
    found = reliability_of(checks)
    assert (found.comparisons, found.right) == (3, pytest.approx(2 / 3))
    assert found.brier == pytest.approx((0.01 + 0.81 + 0.04) / 3)
    assert found.baseline == pytest.approx(0.25)
    assert [(part.found, part.comparisons) for part in found.bins] == [(0.0, 1), (0.5, 2)]


@pytest.mark.deep
def test_a_part_of_a_study_is_run_by_arm_and_seed_and_the_rest_later(study, tmp_path, capsys):
    folder, results = study
    out = tmp_path / "study"
    shutil.copytree(folder.folder, out)
    for name in ("fixed-s1", "random-s0"):
        shutil.rmtree(out / "runs" / name)
    command = ["study", str(SPEC), "--out", str(out), "--json"]
    with quick():
        assert main([*command, "--arms", "fixed", "--seeds", "1"]) == 0
        part = json.loads(capsys.readouterr().out)
        assert (part["missing"], [run["arm"] for run in part["runs"]]) == (["random-s0"], ["fixed", "fixed"])
        assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == []
    assert [run.valid for run in read_config(out / "results.json", Results).runs] == [run.valid for run in results.runs]


@pytest.mark.parametrize(("option", "named", "known"), [("--arms", "fxied", "fixed, random"), ("--seeds", "2", "0, 1")])
def test_a_part_that_no_run_has_is_refused_before_anything_is_done(tmp_path, capsys, option, named, known):
    assert main(["study", str(SPEC), "--out", str(tmp_path / "study"), option, named]) == 2
    assert f"{option} names {named!r}, but no run has it; choose from {known}" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_a_part_is_not_chosen_where_nothing_is_run(study, capsys):
    command = ["study", str(SPEC), "--out", str(study[0].folder), "--results-only", "--arms", "fixed"]
    assert_refused(
        capsys,
        command,
        "--results-only sums up all finished runs; leave out --arms, --seeds and --copy-to, which are for running",
    )


def test_the_same_command_again_changes_no_run(study, capsys):
    folder, results = study
    before = finished(folder.folder)
    with quick():
        assert main(["study", str(SPEC), "--out", str(folder.folder), "--json"]) == 0
    assert finished(folder.folder) == before
    assert json.loads(capsys.readouterr().out)["held_out"] == results.held_out


def test_results_and_logs_are_copied_to_an_address_also_of_runs_that_were_finished_before(study, tmp_path):
    out, there = tmp_path / "study", tmp_path / "there"
    shutil.copytree(study[0].folder, out)
    with quick():
        assert main(["study", str(SPEC), "--out", str(out), "--copy-to", f"file://{there}"]) == 0
    copied = [there / name for name in ("study.json", "results.json", "table.txt", "start/warmup/done.json")]
    copied += [there / "runs" / run / "stage_00" / "done.json" for run in RUNS]
    for copy in copied:
        assert copy.read_bytes() == (out / copy.relative_to(there)).read_bytes()
    assert not list(there.rglob("*.safetensors"))


@pytest.mark.deep
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_study_that_is_cut_off_at_every_renaming_ends_as_if_it_had_not_been(tmp_path, study, monkeypatch, before):
    whole, out, kept, cuts = study[0], tmp_path / "study", {}, 0

    def made_before(run: RunFolder) -> None:
        """The work of a run, made when nobody disturbed: what is cut off here is what the study does around it."""
        source = RunFolder(whole.folder / run.folder.relative_to(out))
        parts = [source.warmup] if run.folder == out / "start" else source.finished_stages()
        for part in parts:
            if not (target := run.find_stage(part.folder.name)).done.exists():
                shutil.copytree(part.folder, target.folder)
        if not run.validation.exists():
            write_atomically(run.validation, source.validation.read_bytes())

    monkeypatch.setattr(study_module, "prepare_run", lambda trainee, run: made_before(run))
    monkeypatch.setattr(studying, "run_loop", lambda settings, run: made_before(run))
    while True:
        with pytest.MonkeyPatch.context() as patch:
            cut_power(patch, renamings=3 + cuts % 8, before=before)  # results are four files and a list
            try:
                run_study(SPEC, out)
                break
            except PowerCutError:
                cuts += 1
        after = finished(out)
        assert {name: after[name] for name in kept} == kept, "a finished stage was altered"
        kept = after
        assert cuts < 60, "the study does not get on"
    assert cuts > 5
    assert files(out) == files(whole.folder)
    assert (out / "results.json").read_bytes() == whole.results.read_bytes()


def made_already(whole: StudyFolder, out: Path) -> None:
    """The work of the study in another folder; what is left to do is what the study does around its runs."""
    shutil.copytree(whole.folder, out, copy_function=os.link)
    for made in (out / "results.json", out / "table.txt", out / "study.svg"):
        made.unlink()


def test_a_run_that_raises_anything_is_named_with_its_traceback_and_stops_no_other(
    tmp_path, study, monkeypatch, capsys
):
    def fails(settings, run: RunFolder) -> None:
        if run.folder.name == broken:
            raise ZeroDivisionError("a fault\nof ours")

    made_already(study[0], out := tmp_path / "study")
    broken = "fixed-s1"
    monkeypatch.setattr(studying, "run_loop", fails)
    assert main(["study", str(SPEC), "--out", str(out)]) == 1
    trace = out / "runs" / broken / "failure.txt"
    *each, error = capsys.readouterr().err.splitlines()
    assert each == ["fixed-s0: done, 1 of 3 runs", "fixed-s1: failed, 2 of 3 runs", "random-s0: done, 3 of 3 runs"]
    assert error == f"lakewright: fixed-s1: ZeroDivisionError: a fault of ours; its traceback is in {trace}"
    assert "in fails" in trace.read_text()
    assert (out / "results.json").read_bytes() == study[0].results.read_bytes(), "the others are summed up"

    broken = "none"
    assert main(["study", str(SPEC), "--out", str(out)]) == 0
    assert not trace.exists(), "a run that has recovered has no failure"


def test_runs_that_all_fail_before_they_have_a_folder_can_begin_the_next_time(tmp_path, study, monkeypatch):
    def fails(planned, folder):
        raise OSError(28, "No space left on device")

    made_already(study[0], out := tmp_path / "study")
    shutil.rmtree(out / "runs")
    with monkeypatch.context() as patch:
        patch.setattr(studying, "begin_run", fails)
        results, failures = run_study(SPEC, out)
    assert (results.missing, results.arms) == (sorted(failures), [])
    remedy = "No space left on device; free disk space and run the same command again; finished parts are reused"
    assert failures["random-s0"] == f"{out / 'runs' / 'random-s0'}: {remedy}"
    monkeypatch.setattr(studying, "run_loop", lambda settings, run: None)
    results, failures = run_study(SPEC, out)
    assert (results.missing, failures) == (["fixed-s0", "fixed-s1", "random-s0"], {})


@pytest.mark.deep
def test_an_arm_whose_budget_is_spent_before_its_first_stage_says_why(tmp_path, capsys):
    text = SPEC.read_text().replace("budget = 300", "budget = 5").replace("asked_first = false", "asked_first = true")
    spec, out = tmp_path / "spec.toml", tmp_path / "study"
    spec.write_text(text.replace("seeds = [0, 1]", "seeds = [0]"))
    for words in ((), ("--results-only",)):
        with quick():
            assert main(["study", str(spec), "--out", str(out), *words]) == 1
        told = capsys.readouterr()
        reason = r"budget is 5 tokens, all spent before the first stage: \d+ by the trial and 0 by the engineer"
        assert re.search(rf"random-s0 cannot finish: {reason}; choose a larger budget", told.out)
        assert words or re.search(rf"^lakewright: random-s0: {out}/runs/random-s0: {reason}", told.err, re.MULTILINE)
        assert "fixed-s0 cannot finish" not in told.out
    assert list(results_of(plan_study(spec), StudyFolder(out)).unable) == ["random-s0"]


def test_another_spec_on_the_same_folder_is_refused(tmp_path, study):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.read_text().replace("budget = 300", "budget = 301"))
    with refused("spec.budget is 300 there and 301 now"):
        run_study(path, study[0].folder)


def test_a_study_whose_warm_up_is_not_finished_may_be_deleted(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.read_text().replace("budget = 300", "budget = 301"))
    (out := StudyFolder(tmp_path / "study")).open(plan_study(SPEC))
    with refused("spec.budget is 300 there and 301 now", f"delete {out.folder}"):
        run_study(path, out.folder)


def test_a_study_from_before_a_setting_existed_resumes(tmp_path):
    plan, folder = plan_study(SPEC), StudyFolder(tmp_path / "out")
    folder.open(plan)
    raw = json.loads(folder.plan.read_text())
    for settings in (raw["start"], *(run["settings"] for run in raw["runs"])):
        del settings["teams"]
    with listed(folder.plan):
        folder.plan.write_text(json.dumps(raw))
    before = folder.plan.read_bytes()
    folder.open(plan)
    assert folder.plan.read_bytes() == before, "the study's own file stays as it is"


@pytest.mark.deep
def test_random_configs_are_tried_once_and_ranked_by_what_training_on_them_gains(tmp_path, study):
    text = SPEC.read_text().partition("[arms]")[0].replace('baseline = "fixed"', "")
    path = tmp_path / "spec.toml"
    path.write_text(f"{text}[configs]\ncount = 4\nhole_ratios = [0.2]\nwait_ratios = [0.5]\n")
    plan = plan_study(path)
    assert len({run.name for run in plan.runs}) == 4
    assert len({str(run.settings.design) for run in plan.runs}) == 4
    out = tmp_path / "out"
    with quick():
        results, failures = run_study(path, out)
    assert failures == {}
    assert len(results.prediction.gains) == len(results.prediction.scores) == 4
    assert results.prediction.by_score is None, "a policy that solves nothing has no ranks"
    assert "informative groups" in tabulate_results(results)


def test_ranks_come_with_their_interval_and_none_where_all_are_alike():
    rank = correlate_ranks([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1.0, 2.0, 3.0, 5.0, 4.0, 6.0])
    assert rank.rho == pytest.approx(1 - 6 * 2 / (6 * 35))
    assert -1 <= rank.low <= rank.rho <= rank.high <= 1
    assert correlate_ranks([0.1, 0.1, 0.1], [1.0, 2.0, 3.0]) is None
