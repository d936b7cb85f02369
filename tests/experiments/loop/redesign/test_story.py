"""A stage in a few lines: what the engineer saw, said and changed, and what followed."""

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.evidence.token_form import read_tokens
from lakewright.engineer.evidence.vocabulary import DeltaGrammar
from lakewright.engineer.lessons import Examination, synthetic_examples
from lakewright.engineer.reading.forms import ColumnPlace, map_signs
from lakewright.engineer.rollback import Comparison
from lakewright.engineer.tally import pool_tallies
from lakewright.experiments.environments.lake import design_of, lake_space
from lakewright.experiments.loop.closed_loop import prepare_run
from lakewright.experiments.loop.records.history import describe_stage
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Done, Rollback, Validation, read_record, write_record
from lakewright.experiments.loop.redesign.run_engineer import RunEngineer
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.experiments.loop.training.trainee import Trainee, make_trainee
from lakewright.experiments.viewer.run_table import as_json, tabulate_run
from lakewright.policy.inference import answer_under_grammar
from lakewright.policy.models import load_checkpoint
from tests.support.models.tiny_policy import ENV, tiny_run
from tests.support.samples.tiny_runs import finished, forget


def test_a_stage_is_shown_in_a_few_lines():
    told = [line for line in describe_stage(finished("random"), 0, lake_space()) if not line.startswith("guard")]
    validation, proposal, trial, following = told
    assert validation.startswith("validation")
    assert "% of held-out plans valid" in validation
    assert "data" in proposal or "hole" in proposal or "wait" in proposal
    assert "tried" in trial
    assert following.startswith("next")
    assert "(trial: tried" in following or "(current: tried" in following


def test_a_stage_that_was_rolled_back_is_shown_as_such_and_the_policy_that_counts_is_the_one_before(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("random").folder, run.folder)
    write_record(
        run.stage(1).design_file, design_of(EnvConfig({3: SizeConfig(0.4, 0.2, 0.5), 5: SizeConfig(0.6, 0.25, 0.5)}))
    )
    write_record(run.stage(1).rollback, Rollback("stage_00", Comparison(1, 9, 0.011), True, "stage_00"))
    forget(run.stage(1))
    trainee = make_trainee(tiny_run(teacher="random"))
    RunEngineer(trainee, run, trainee.hold_out(run)).redesign(1)
    write_record(run.stage(1).done, Done(1.0, {}))
    assert run.stage(1).read_next().design == design_of(ENV)
    assert "rolled back validation fell: 9 lost" in describe_stage(run, 1, lake_space())[1]
    *_, last = tabulate_run(run).splitlines()
    assert str(run.stage(0).checkpoint) in last
    assert "stage 1 (rolled back)" in tabulate_run(run)
    assert [stage.get("taken_back") for stage in as_json(run)["stages"]] == [None, False, True]


def test_a_run_says_how_well_the_engineer_has_learned_its_part():
    run = finished("random")
    known = read_record(run.warmup.examination, Examination)
    assert known.summary() in tabulate_run(run).splitlines()
    assert f"{100 * known.agreement:.0f} % of the edits in {known.questions} answers" in known.summary()


def count_followed(trainee: Trainee, checkpoint: Path, questions: int = 200) -> Counter[str]:
    """How many of an engineer's changes have the sign of the taught rule's answer to the question that was asked, and
    to the next one, wherever the two signs are opposite: an engineer that does not read has as many of either."""
    model, tokenizer = load_checkpoint(checkpoint)
    design, space, settings = trainee.start, trainee.environment.space, trainee.settings
    examples = synthetic_examples(questions, design, space, settings.stages, np.random.default_rng(1), settings.taught)
    allowed = DeltaGrammar(space, design.strata).allowed

    def read_signs(answer: list[str]) -> dict[ColumnPlace, int]:
        return map_signs(read_tokens(answer, space), design, space)

    taught = [read_signs(answer) for _, answer in examples]
    found = Counter[str]()
    for (prompt, _), asked, following in zip(examples, taught, [*taught[1:], taught[0]], strict=True):
        given = read_signs(answer_under_grammar(model, tokenizer, prompt, allowed))
        for place in (place for place, sign in asked.items() if sign * following[place] < 0):
            found[{asked[place]: "asked", following[place]: "following"}.get(given[place], "neither")] += 1
    return found


@pytest.mark.deep
def test_the_engineer_of_the_demo_reads_its_evidence(tmp_path):
    run, settings = RunFolder(tmp_path / "run"), load_settings("cpu", [])
    run.open(settings)
    trainee = make_trainee(settings)
    prepare_run(trainee, run)
    followed = count_followed(trainee, run.warmup.checkpoint)
    assert followed["asked"] > 3 * followed["following"], followed
    valid = pool_tallies(read_record(run.warmup.validation, Validation).outcomes.values())
    assert valid.valid_rate > 0.5, "and it has learned to plan"


def test_the_last_line_names_the_policy_that_counts():
    run = finished("random")
    stage = run.find_standing(1)
    assert tabulate_run(run).splitlines()[-1].startswith(f"final checkpoint: {stage.checkpoint}")
