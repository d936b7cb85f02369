"""The shape of a run's model, from which its memory follows: built without memory, or known by its name on the hub."""

import functools
from collections import Counter
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel, Qwen3Config

from lakewright.core_jax.errors import InputError
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.policy.models import check_configs, prepare_place
from lakewright.policy.training import is_matrix

# Models whose config need not be fetched: hidden, mlp, layers, heads, key-value heads, and whether head and embedding
# are one matrix. All have heads of 128 and 151 936 words (Qwen3 technical report, table 1, and their config.json).
QWEN3 = {
    "Qwen/Qwen3-0.6B": (1024, 3072, 28, 16, 8, True),
    "Qwen/Qwen3-1.7B": (2048, 6144, 28, 16, 8, True),
    "Qwen/Qwen3-4B": (2560, 9728, 36, 32, 8, True),
    "Qwen/Qwen3-8B": (4096, 12288, 36, 32, 8, False),
    "Qwen/Qwen3-14B": (5120, 17408, 40, 40, 8, False),
    "Qwen/Qwen3-32B": (5120, 25600, 64, 64, 8, False),
}


class Widths(msgspec.Struct, frozen=True):
    """The widths of a transformer.

    attention: heads x their width. keys: key-value heads x their width, the same for values.
    """

    hidden: int
    mlp: int
    layers: int
    attention: int
    keys: int
    words: int
    positions: int


class ModelShape(msgspec.Struct, frozen=True):
    """The numbers of weights that the memory of a model depends on.

    matrices: only matrices that Muon trains. stacked: the most matrices of one shape, which Muon orthogonalises
    together. embeddings: weights of the input embedding. linear: inputs + outputs of all linear layers that an adapter
    changes, so that an adapter of rank r has r x linear weights. widths: None for a network on the board.
    """

    name: str
    parameters: int
    matrices: int
    stacked: int
    head: int
    embeddings: int
    linear: int
    widths: Widths | None


def model_shape(settings: RunSettings) -> ModelShape:
    """The shape of the model that a run trains.

    Raises InputError if its config cannot be read, or the environment has no use for such a model.
    """
    start = prepare_place(settings.start) if settings.start else ""
    if _is_known(start):
        return _find_known_shape(start)
    with torch.device("meta"):
        model = _build_from_start(start) if start else _build_from_settings(settings)
    return shape_of_model(model, settings.start or _name(settings))


@functools.cache  # who estimates or checks a run asks several times
def _find_known_shape(start: str) -> ModelShape:
    with torch.device("meta"):
        return shape_of_model(_build_from_start(start), start)


def _is_known(start: str) -> bool:
    """Whether this is the name of a model of QWEN3, and no folder of that name."""
    return start in QWEN3 and not Path(start).exists()


def count_weight_bytes(place: str) -> int:
    """The bytes that the weights of a saved model, or of a model on the hub, take when it is loaded to answer.

    Raises InputError if its config cannot be read.
    """
    with torch.device("meta"):
        model = _build_from_start(prepare_place(place))
    return shape_of_model(model, place).parameters * model.dtype.itemsize


def shape_of_model(model: PreTrainedModel, name: str) -> ModelShape:
    """The shape of a model, on any device."""
    parameters = dict(model.named_parameters())  # weights that are shared come once
    matrices = {key: part for key, part in parameters.items() if is_matrix(key, part)}
    groups = Counter[tuple[int, ...]]()
    for part in matrices.values():
        groups[tuple(part.shape)] += part.numel()
    head = cast(Any, model).get_output_embeddings()
    embeddings = [part for part in model.modules() if isinstance(part, nn.Embedding)]
    inner = [(key, part) for key, part in model.named_modules() if isinstance(part, nn.Linear) and part is not head]
    return ModelShape(
        name=name,
        parameters=sum(part.numel() for part in parameters.values()),
        matrices=sum(groups.values()),
        stacked=max(groups.values(), default=0),
        head=head.weight.numel() if head is not None else 0,
        embeddings=sum(part.weight.numel() for part in embeddings),
        linear=sum(part.in_features + part.out_features for _, part in inner),
        widths=_widths(model.config),
    )


def _name(settings: RunSettings) -> str:
    return settings.model if isinstance(settings.model, str) else f"{settings.model.architecture} from scratch"


def _build_from_settings(settings: RunSettings) -> PreTrainedModel:
    model, _ = make_trainee(msgspec.structs.replace(settings, device="cpu")).build_model()
    return model


def _build_from_start(start: str) -> PreTrainedModel:
    try:
        config = _find_known_config(start)
        if config is None:
            check_configs(Path(start))
            config = AutoConfig.from_pretrained(start, trust_remote_code=False)
        return AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"start is {start}, whose config.json cannot be read ({first}); give its folder") from error


def _find_known_config(start: str) -> Qwen3Config | None:
    if not _is_known(start):
        return None
    hidden, mlp, layers, heads, pairs, tied = QWEN3[start]
    return Qwen3Config(
        hidden_size=hidden,
        intermediate_size=mlp,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=pairs,
        head_dim=128,
        vocab_size=151_936,
        max_position_embeddings=40_960,
        tie_word_embeddings=tied,
    )


def _widths(config: Any) -> Widths | None:
    if not hasattr(config, "num_key_value_heads"):
        return None
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return Widths(
        hidden=config.hidden_size,
        mlp=config.intermediate_size,
        layers=config.num_hidden_layers,
        attention=config.num_attention_heads * head,
        keys=config.num_key_value_heads * head,
        words=config.vocab_size,
        positions=config.max_position_embeddings,
    )


def adapter_weights(shape: ModelShape, rank: int) -> int:
    """The weights of an adapter of that rank on every linear layer except the head (Hu et al. 2021)."""
    return shape.linear * rank
