"""The presets that come with the package: they load, and what they ask for fits the model."""

import pytest

from lakewright.core_jax.config import holds, holes_of
from lakewright.experiments.boards.benchmark.tiers import PAPER
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.experiments.preset_files import list_presets
from lakewright.policy.codecs.tokens import answer_length
from lakewright.policy.model_settings import FAMILY
from lakewright.policy.training.hardware import share_batch
from tests.support.refusals import refused


@pytest.mark.parametrize("name", list_presets())
def test_a_preset_loads_and_shares_its_answers_out_evenly(name):
    grpo = load_settings(name, []).grpo
    assert share_batch(grpo.prompts, grpo.group, grpo.host)["generation_batch_size"] == grpo.prompts * grpo.group


def test_the_preset_for_one_gpu_trains_all_teams_sizes_and_hole_ratios_of_the_benchmark():
    settings = load_settings("h100", [])
    assert settings.teams == (2, 3, 4, 5)
    assert set(settings.design) == set(settings.warmup_design) == set(map(str, range(3, 11)))
    assert settings.warmup.hole_ratios == settings.validation.hole_ratios == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert settings.warmup.fresh
    assert settings.grpo.fresh


def test_the_longest_prompt_and_answer_of_the_preset_for_one_gpu_fit_its_model():
    settings = load_settings("h100", [])
    size, least = max(map(int, settings.design)), min(settings.warmup.hole_ratios)
    for agents in settings.teams:
        assert holds(size, agents)
        prompt = 5 + size**2 - holes_of(size, agents, least) + 2 * agents
        assert prompt + answer_length(settings.horizon, agents) <= FAMILY[settings.model].positions, f"{agents} agents"


@pytest.mark.parametrize("name", ["cpu-6h", "cpu-night"])
def test_the_presets_for_two_cores_train_a_board_network_on_what_the_benchmark_holds(name):
    settings = load_settings(name, ["exclude=benchmark/benchmark.jsonl"])
    assert settings.model.architecture == "board"
    assert set(settings.teams) >= {agents for agents, _ in PAPER.teams}
    assert set(settings.design) == set(settings.warmup_design) == {str(size) for _, size in PAPER.teams}
    assert settings.warmup.hole_ratios == PAPER.hole_ratios


def test_boards_to_exclude_are_refused_where_boards_are_not_drawn_while_training():
    with refused("exclude", "boards.jsonl"):
        load_settings("cpu", ["exclude=boards.jsonl"])


def test_a_board_network_cannot_be_the_engineer():
    with refused("teacher", "model.architecture"):
        load_settings("cpu-6h", ["teacher=self"])


@pytest.mark.parametrize("teacher", ["self", "base", "matched_random"])
def test_a_board_network_in_a_folder_cannot_be_the_engineer(tmp_path, teacher):
    (tmp_path / "config.json").write_text('{"model_type": "lakewright_board"}')
    chosen = [f"teacher={teacher}", *(["teacher_options.match=self"] if teacher == "matched_random" else [])]
    with refused("teacher", f"{teacher}"):
        load_settings("cpu", [f"start={tmp_path}", *chosen])
    assert load_settings("cpu", [f"start={tmp_path}", "teacher=difficulty"])


def test_boards_are_worth_their_regret_where_groups_hold_the_certified_plan():
    assert load_settings("cpu", []).objective == "regret"
    assert load_settings("cpu", ["grpo.guided=false"]).objective == "learnability"
    assert load_settings("cpu", ["difficulty.objective=learnability"]).objective == "learnability"


def test_null_empties_an_optional_setting():
    assert load_settings("cpu-30", []).warmup.minutes
    assert load_settings("cpu-30", ["warmup.minutes=null"]).warmup.minutes is None
