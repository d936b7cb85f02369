"""Weights are refused in one line unless all of them are there, in the right shape, and finite numbers."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import LISTING
from lakewright.policy.models import PRETRAINED, load_model, resolve_place, save_checkpoint
from lakewright.policy.training import HostSettings
from lakewright.policy.training.hardware import gather_model
from tests.support.models.damaged_weights import Damage, damage_copy, damage_file, drop, poison, put
from tests.support.models.gguf_model import write_gguf
from tests.support.models.small_language_model import language, language_checkpoint, language_model
from tests.support.models.tiny_policy import tiny_model, tokenizer
from tests.support.refusals import refused

VALUES, HEAD, NORM = "model.layers.0.self_attn.v_proj.weight", "lm_head.weight", "model.norm.weight"
REMEDY = "take config and weights from one checkpoint, or fetch or train it again"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "checkpoint"
    save_checkpoint(folder, tiny_model(), tokenizer())
    return folder


def refusal(place: Path) -> str:
    with pytest.raises(InputError) as refused:
        load_model(place, device="cpu")
    assert "\n" not in str(refused.value)
    return str(refused.value)


def drop_two(tensors):
    del tensors[VALUES], tensors[NORM]


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a layer's values": (drop(VALUES), f"tensor {VALUES} is missing"),
    "the head": (drop(HEAD), f"tensor {HEAD} is missing"),
    "two": (drop_two, f"tensor {VALUES} (and 1 more) is missing"),
    "one too many": (put("more.weight", torch.ones(2)), "tensor more.weight is not one of a qwen3 model"),
    "another shape": (put(NORM, torch.ones(31)), f"tensor {NORM} has shape [31], the model needs [32]"),
    "a broadcast": (put(NORM, torch.ones(1)), f"tensor {NORM} has shape [1], the model needs [32]"),
    "no number": (poison(HEAD, math.nan), f"tensor {HEAD} holds nan"),
    "plus infinity": (poison(VALUES, math.inf), f"tensor {VALUES} holds inf"),
    "minus infinity": (poison(NORM, -math.inf), f"tensor {NORM} holds -inf"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_tensor_is_refused_by_file_and_name(checkpoint, tmp_path, name):
    damage, said = DAMAGES[name]
    folder = damage_copy(checkpoint, tmp_path / "damaged", damage)
    assert refusal(folder) == f"{folder}/model.safetensors: {said}; {REMEDY}"


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_another_model_type_is_refused_by_the_tensors_that_do_not_fit(checkpoint, tmp_path, kind):
    folder = damage_copy(checkpoint, tmp_path / "other", lambda _: None)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": kind}))
    found = refusal(folder)
    assert found.startswith(f"{folder}/model.safetensors: tensor ")
    assert found.endswith(REMEDY)


def test_a_board_network_that_lacks_a_tensor_is_refused(tmp_path):
    folder = damage_copy(Path(resolve_place(PRETRAINED)), tmp_path / "board", drop("maps.update.weight"))
    assert refusal(folder) == f"{folder}/model.safetensors: tensor maps.update.weight is missing; {REMEDY}"


def test_a_shard_is_named(tmp_path):
    folder = tmp_path / "shards"
    tiny_model().save_pretrained(folder, max_shard_size="20KB")
    tokenizer().save_pretrained(folder)
    index = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    assert len(set(index.values())) > 1, "the weights are in several files"
    load_model(folder, device="cpu")
    damage_file(folder / index[VALUES], poison(VALUES, math.nan))
    assert refusal(folder) == f"{folder}/{index[VALUES]}: tensor {VALUES} holds nan; {REMEDY}"


@pytest.fixture(scope="module")
def tied(tmp_path_factory):
    """A language model whose head is its embedding; the file has it once."""
    model = language_model()
    model.config.tie_word_embeddings = True
    model.tie_weights()
    folder = tmp_path_factory.mktemp("tied") / "checkpoint"
    save_checkpoint(folder, model, language())
    return folder


def test_tied_weights_are_read_from_the_one_tensor_that_the_file_has(tied):
    model, _ = load_model(tied, device="cpu")
    assert model.lm_head.weight is model.model.embed_tokens.weight


@pytest.mark.parametrize("damage", [drop("model.embed_tokens.weight"), poison("model.embed_tokens.weight", math.nan)])
def test_tied_weights_that_are_damaged_are_refused(tied, tmp_path, damage):
    folder = damage_copy(tied, tmp_path / "damaged", damage)
    assert refusal(folder).startswith(f"{folder}/model.safetensors: tensor model.embed_tokens.weight ")


def test_a_missing_head_that_is_not_tied_is_refused(tied, tmp_path):
    folder = damage_copy(tied, tmp_path / "untied", lambda _: None)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    assert refusal(folder).startswith(f"{folder}/model.safetensors: tensor {HEAD} is missing; ")


def test_buffers_that_old_files_hold_and_transformers_computes_are_no_error(checkpoint, tmp_path):
    old = put("model.layers.0.self_attn.rotary_emb.inv_freq", torch.ones(8))
    folder = damage_copy(checkpoint, tmp_path / "old", old)
    (folder / LISTING).unlink()
    model, _ = load_model(folder, device="cpu")
    assert torch.equal(model.lm_head.weight.cpu(), tiny_model().lm_head.weight.cpu())


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    from peft import LoraConfig, get_peft_model

    base, _ = load_model(language_checkpoint(), device="cpu")
    folder = tmp_path_factory.mktemp("lora") / "adapter"
    get_peft_model(base, LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM")).save_pretrained(folder)
    language().save_pretrained(folder)
    return folder


LORA = "base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight"
ADAPTERS: dict[str, tuple[Damage, str]] = {
    "missing": (drop(LORA), f"tensor {LORA} is missing"),
    "unknown": (
        put("base_model.model.more.lora_A.weight", torch.ones(2)),
        "base_model.model.more.lora_A.weight is not",
    ),
    "no number": (poison(LORA, math.nan), f"tensor {LORA} holds nan"),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_damaged_adapter_is_refused(adapter, tmp_path, name):
    damage, said = ADAPTERS[name]
    folder = damage_copy(adapter, tmp_path / "damaged", damage, "adapter_model.safetensors")
    found = refusal(folder)
    assert found.startswith(f"{folder}/adapter_model.safetensors: ")
    assert said in found


def test_a_damaged_gguf_file_is_refused_and_nothing_of_it_is_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    lacking = write_gguf(tmp_path / "lacking.gguf", lacks="blk.0.attn_v.weight")
    assert refusal(lacking) == f"{lacking}: tensor {VALUES} is missing; {REMEDY}"
    poisoned = write_gguf(tmp_path / "poisoned.gguf")
    poisoned.write_bytes(poisoned.read_bytes()[:-4] + np.float32(math.nan).tobytes())  # the end of the last norm
    assert refusal(poisoned) == f"{poisoned}: tensor {NORM} holds nan; {REMEDY}"
    assert not (tmp_path / "caches").exists()


def test_weights_that_processes_put_together_are_checked(tmp_path):
    """DeepSpeed's ZeRO 3 and FSDP save whole weights to a folder, from which the first process reads them."""
    plugin = SimpleNamespace(zero_stage=3)
    state = SimpleNamespace(deepspeed_plugin=plugin)
    trainer = SimpleNamespace(
        is_fsdp_enabled=False,
        accelerator=SimpleNamespace(state=state, is_main_process=True),
        save_model=lambda folder: tiny_model().save_pretrained(folder),
    )
    model = gather_model(trainer, tmp_path / "whole", HostSettings())
    assert torch.equal(model.lm_head.weight, tiny_model().lm_head.weight.cpu())

    def save_damaged(folder):
        tiny_model().save_pretrained(folder)
        damage_file(Path(folder) / "model.safetensors", drop(VALUES))

    trainer.save_model = save_damaged
    with refused("model.safetensors:", "v_proj.weight"):
        gather_model(trainer, tmp_path / "whole", HostSettings())
