"""The model and its checkpoints, and the optimizer of its matrices."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import LISTING, convert
from lakewright.policy.codecs.tokens import encode_prompt_tokens
from lakewright.policy.model_settings import FAMILY, ModelName, ModelSettings
from lakewright.policy.models import build_model, load_checkpoint, save_checkpoint
from lakewright.policy.training.optimizers import Muon, orthogonalise_matrices
from tests.support.models.tiny_policy import MODEL, tasks, tiny_model, tokenizer
from tests.support.refusals import refused

CHECKPOINT = ("config.json", "model.safetensors", "tokenizer.json")


def logits(model: torch.nn.Module) -> torch.Tensor:
    """What the model says of one prompt."""
    model.eval()
    with torch.inference_mode():
        return model(input_ids=torch.tensor([encode_prompt_tokens(tasks()[0].board)])).logits


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "checkpoint"
    save_checkpoint(folder, tiny_model(), tokenizer())
    return folder


def test_a_checkpoint_is_safetensors_and_says_what_the_model_said(checkpoint):
    names = {file.name for file in checkpoint.iterdir()}
    assert names >= set(CHECKPOINT)
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pth", ".pkl"))]
    model, words = load_checkpoint(checkpoint)
    assert torch.equal(logits(model), logits(tiny_model()))
    assert words.get_vocab() == tokenizer().get_vocab()
    special = (tokenizer().pad_token_id, tokenizer().bos_token_id, tokenizer().eos_token_id)
    assert (words.pad_token_id, words.bos_token_id, words.eos_token_id) == special


def test_a_second_save_keeps_every_bit(checkpoint, tmp_path):
    model, words = load_checkpoint(checkpoint)
    save_checkpoint(tmp_path / "again", model, words)
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "again" / name).read_bytes() == (checkpoint / name).read_bytes()


DAMAGES = [
    ("config.json", 0),
    ("config.json", {"model_type": 3}),
    ("generation_config.json", ["a"]),
    ("tokenizer_config.json", [3]),
    ("tokenizer.json", {}),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_a_checkpoint_whose_json_is_something_else_is_refused_in_a_line(checkpoint, tmp_path, name, damage):
    shutil.copytree(checkpoint, tmp_path / "damaged")
    (tmp_path / "damaged" / name).write_text(json.dumps(damage))
    with pytest.raises(InputError, match=r"damaged: not a readable checkpoint \(.+\); train it again$") as refused:
        load_checkpoint(tmp_path / "damaged")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("missing", CHECKPOINT)
def test_a_checkpoint_that_lacks_a_piece_is_refused_by_its_name(tmp_path, missing):
    save_checkpoint(tmp_path / "checkpoint", tiny_model(), tokenizer())
    (tmp_path / "checkpoint" / missing).unlink()
    with refused("checkpoint:", f"{missing}"):
        load_checkpoint(tmp_path / "checkpoint")


@pytest.mark.parametrize("broken", CHECKPOINT)
def test_a_checkpoint_with_a_broken_piece_is_refused(tmp_path, broken):
    save_checkpoint(tmp_path / "checkpoint", tiny_model(), tokenizer())
    (tmp_path / "checkpoint" / broken).write_bytes(b"{ half a file")
    with pytest.raises(InputError, match="checkpoint: not a readable checkpoint"):
        load_checkpoint(tmp_path / "checkpoint")


def test_a_checkpoint_of_another_shape_is_refused(tmp_path):
    save_checkpoint(tmp_path / "checkpoint", tiny_model(), tokenizer())
    file = tmp_path / "checkpoint" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "hidden_size": 2 * MODEL.hidden}))
    with refused("model.safetensors: tensor lm_head.weight (and 11 more)"):
        load_checkpoint(tmp_path / "checkpoint")


def rewritten(checkpoint: Path, to: Path, **changes: object) -> Path:
    """A copy of the checkpoint whose config says something else; None takes an entry away."""
    shutil.copytree(checkpoint, to, ignore=shutil.ignore_patterns(LISTING))
    config = {**json.loads((to / "config.json").read_text()), **changes}
    (to / "config.json").write_text(json.dumps({name: value for name, value in config.items() if value is not None}))
    return to


@pytest.mark.parametrize(("codec", "named"), [("text", "text"), (None, "text"), ("runes", "runes")])
def test_a_checkpoint_of_another_codec_is_refused(checkpoint, tmp_path, codec, named):
    other = rewritten(checkpoint, tmp_path / "other", codec=codec)
    with refused("other: config.json: codec", f"'{named}'", "'tokens'"):
        load_checkpoint(other)


def test_a_checkpoint_with_the_words_of_another_version_is_refused(checkpoint, tmp_path):
    other = rewritten(checkpoint, tmp_path / "other")
    file = other / "tokenizer.json"
    file.write_text(file.read_text().replace('"<starts>"', '"<begins>"'))
    with refused("other: tokenizer.json:", "words", "version's"):
        load_checkpoint(other)


@pytest.mark.parametrize(("name", "millions"), [("0.6M", 0.6), ("3M", 3), ("25M", 25), ("100M", 100)])
def test_the_family_has_the_sizes_that_it_names(name, millions):
    with torch.device("meta"):
        model = build_model(name, tokenizer(), 0)
    assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.06)
    assert convert(name, ModelSettings | ModelName, "model") in FAMILY


def test_weights_depend_on_the_seed_alone():
    assert torch.equal(logits(tiny_model(1)), logits(tiny_model(1)))
    assert not torch.equal(logits(tiny_model(1)), logits(tiny_model(2)))


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 4, 32), (2, 32, 4)])
def test_orthogonalised_matrices_are_nearly_orthogonal_and_keep_their_directions(shape):
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(shape, generator=generator)
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    found = orthogonalise_matrices(matrices)
    singular = torch.linalg.svdvals(found)
    assert found.shape == shape
    assert ((singular > 0.5) & (singular < 1.3)).all(), singular
    turned = left.mT @ found @ right.mT
    aligned = torch.diag_embed(torch.diagonal(turned, dim1=1, dim2=2))
    assert torch.allclose(turned, aligned, atol=1e-4), "the singular vectors are those of the matrix"
    assert (torch.diagonal(aligned, dim1=1, dim2=2) > 0.5).all()


def test_muon_goes_down_and_leaves_what_has_no_gradient():
    torch.manual_seed(0)
    target, matrix = torch.randn(6, 4), torch.nn.Parameter(torch.zeros(6, 4))
    idle = torch.nn.Parameter(torch.ones(2, 2))
    optimizer = Muon([matrix, idle], lr=0.05)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = ((matrix - target) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert torch.equal(idle, torch.ones(2, 2))
