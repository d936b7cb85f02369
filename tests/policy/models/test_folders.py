"""Model folders from anywhere: none runs code, is read from pickles, or takes more memory than there is."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lakewright.core_jax.errors import InputError
from lakewright.policy.model_settings import ModelSettings
from lakewright.policy.models import PRETRAINED, build_model, check_shape, load_model, save_checkpoint
from lakewright.policy.models.folders import MODEL, is_board_network
from tests.support.models.tiny_policy import tiny_model, tokenizer
from tests.support.refusals import refused

ON_HUB = "some/model"
CODE = 'from pathlib import Path\nPath(__file__).with_name("ran").touch()\n'
OWN = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model", "AutoTokenizer": "own.Words"}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words") / "checkpoint"
    save_checkpoint(folder, tiny_model(), tokenizer())
    return folder


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board") / "checkpoint"
    save_checkpoint(folder, build_model(ModelSettings(architecture="board"), tokenizer(), 0, "cpu"), tokenizer())
    return folder


def altered(folder: Path, to: Path, name: str = "config.json", **changes: object) -> Path:
    """A copy of the folder with entries of a JSON file changed."""
    shutil.copytree(folder, to)
    old = json.loads((to / name).read_text()) if (to / name).exists() else {}
    (to / name).write_text(json.dumps({**old, **changes}))
    return to


def refusal(folder: Path | str) -> str:
    """The one line with which a model is refused."""
    with pytest.raises(InputError) as refused:
        load_model(folder, device="cpu")
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("config.json", {"model_type": "own", "auto_map": OWN}),
        ("config.json", {"auto_map": OWN}),
        ("tokenizer_config.json", {"tokenizer_class": "Words", "auto_map": OWN}),
    ],
)
def test_code_in_a_folder_is_never_run_nor_asked_about(words, tmp_path, monkeypatch, name, changes):
    folder = altered(words, tmp_path / "own", name, **changes)
    (folder / "own.py").write_text(CODE)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("a user was asked whether to run code"))
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert refusal(folder).startswith(f"{folder}/{name}: auto_map asks for code of the folder, which")
    assert not (folder / "ran").exists()


def pickled(folder: Path) -> None:
    (folder / MODEL).unlink()
    torch.save({}, folder / "pytorch_model.bin")


def pickled_adapter(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "anywhere"}')
    (folder / MODEL).write_bytes(b"")
    torch.save({}, folder / "adapter_model.bin")


def pickled_shard(folder: Path) -> None:
    (folder / MODEL).unlink()
    torch.save({}, folder / "shard.bin")
    (folder / f"{MODEL}.index.json").write_text('{"weight_map": {"lm_head.weight": "shard.bin"}}')


def pickled_by_name(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "transformers_weights": "adapter_model.bin"}))
    torch.save({}, folder / "adapter_model.bin")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (pickled, "no model.safetensors, and pytorch_model.bin may run code when it is read; save the weights as"),
        (pickled_adapter, "no adapter_model.safetensors, and adapter_model.bin may run code when it is read; save"),
        (pickled_shard, "index.json: 'shard.bin' is not a safetensors file beside it; save the weights as such"),
        (
            pickled_by_name,
            "config.json: 'adapter_model.bin' is not a safetensors file beside it; save the weights as such",
        ),
    ],
)
def test_weights_are_read_from_safetensors_only(words, tmp_path, monkeypatch, spoil: Callable[[Path], None], said):
    folder = Path(shutil.copytree(words, tmp_path / "spoilt"))
    spoil(folder)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("a pickle was read"))
    assert said in refusal(folder)


def test_an_adapter_of_an_adapter_is_refused(words, tmp_path):
    folder = Path(shutil.copytree(words, tmp_path / "adapter"))
    (folder / MODEL).rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "base_model_name_or_path": str(folder)})
    )
    pytest.importorskip("peft")
    assert "is an adapter too; merge that one first" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"layers": 3_000_000}, "layers: 3000000 does not fit: expected `int` <= 64"),
        ({"layers": -1}, "layers: -1 does not fit: expected `int` >= 1"),
        ({"iterations": 1_000_000_000}, "iterations: 1000000000 does not fit: expected `int` <= 256"),
        ({"hidden": 2_000_000}, "hidden: 2000000 does not fit: expected `int` <= 4096"),
        ({"vocab_size": 2_000_000_000}, "vocab_size is 2000000000; choose a model with at most 4096"),
    ],
)
def test_a_board_network_of_absurd_size_is_refused_before_it_is_built(board, tmp_path, monkeypatch, changes, said):
    folder = altered(board, tmp_path / "huge", **changes)
    monkeypatch.setattr("lakewright.policy.models.loading.AutoModelForCausalLM", None)
    assert refusal(folder) == f"{folder}/config.json: {said}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_hidden_layers", 3_000_000),
        ("hidden_size", 1 << 40),
        ("num_attention_heads", 1 << 30),
        ("vocab_size", 10**400),
        ("intermediate_size", 1e18),
        ("text_config", {"num_hidden_layers": 3_000_000}),
    ],
)
def test_a_language_model_of_absurd_size_is_refused_before_it_is_built(words, tmp_path, monkeypatch, name, value):
    folder = altered(words, tmp_path / "huge", **{name: value})
    monkeypatch.setattr("lakewright.policy.models.loading.AutoModelForCausalLM", None)
    assert "; choose a model with at most " in refusal(folder)


def test_another_config_that_config_json_names_is_bounded_too(words, tmp_path):
    folder = altered(words, tmp_path / "huge", configuration_files=["config.4.0.0.json"])
    shutil.copy(
        altered(words, tmp_path / "other", num_hidden_layers=3_000_000) / "config.json", folder / "config.4.0.0.json"
    )
    assert "config.4.0.0.json: num_hidden_layers is 3000000; choose a model with at most 1024" in refusal(folder)


def small_machine(monkeypatch: pytest.MonkeyPatch, total: int) -> None:
    monkeypatch.setattr("lakewright.policy.models.weights.psutil.virtual_memory", lambda: SimpleNamespace(total=total))


def test_a_model_beyond_the_memory_is_refused_before_it_is_there(words, monkeypatch):
    small_machine(monkeypatch, 4096)
    assert "weights take 0.0 GiB, and this machine has 0.0 GiB; choose a smaller model" in refusal(words)
    with refused("model: ", "GiB", "GiB"):
        check_shape("0.6M", tokenizer())
    monkeypatch.undo()
    assert check_shape("0.6M", tokenizer()) is None


@pytest.fixture
def fetched(words, tmp_path, monkeypatch):
    """A folder that stands for the model `some/model` of the hub, as fetched before."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    model = tmp_path / "hub" / "models--some--model"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text("0" * 40)
    return Path(shutil.copytree(words, model / "snapshots" / ("0" * 40)))


def test_a_model_of_the_hub_is_read(fetched):
    model, _ = load_model(ON_HUB, device="cpu")
    assert model.num_parameters() == tiny_model().num_parameters()


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("config.json", {"num_hidden_layers": 3_000_000}, "num_hidden_layers is 3000000; choose a model with at most"),
        ("config.json", {"model_type": "own", "auto_map": OWN}, "auto_map asks for code of the folder, which"),
        ("config.json", {"transformers_weights": "model.bin"}, "'model.bin' is not a safetensors file beside it; save"),
        ("adapter_config.json", {"base_model_name_or_path": "any/model"}, "is an adapter; run hf download some/model"),
    ],
)
def test_a_model_of_the_hub_is_refused_as_a_folder_is(fetched, tmp_path, monkeypatch, name, changes, said):
    shutil.copy(altered(fetched, tmp_path / "altered", name, **changes) / name, fetched / name)
    monkeypatch.setattr("lakewright.policy.models.loading.AutoModelForCausalLM", None)
    assert refusal(ON_HUB).startswith(f"{ON_HUB}: {said}")


def test_a_model_of_the_hub_beyond_the_memory_is_refused_before_it_is_there(fetched, monkeypatch):
    small_machine(monkeypatch, 4096)
    assert refusal(ON_HUB).endswith("this machine has 0.0 GiB; choose a smaller model")


def test_checking_the_size_draws_no_random_numbers(words):
    load_model(words, device="cpu")
    state = torch.get_rng_state()
    load_model(words, device="cpu")
    assert torch.equal(torch.get_rng_state(), state)


def test_board_networks_are_known_by_their_config(words, board, tmp_path):
    assert is_board_network(PRETRAINED)
    assert is_board_network(board)
    assert not is_board_network(words)
    assert not is_board_network(tmp_path)
    (tmp_path / "config.json").write_text("[")
    assert not is_board_network(tmp_path)
