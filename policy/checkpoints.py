"""The policy's network: random weights in the shape of the settings, or any saved checkpoint, as safetensors."""

import os
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
)
from transformers import Qwen3ForCausalLM as Qwen3
from transformers.utils import find_adapter_config_file

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import replacing_folder
from lakewright.policy.codecs import BYTE_VOCABULARY, BYTES, VOCABULARY
from lakewright.policy.language_models import checkpoint_for
from lakewright.policy.model_folders import ADAPTER, check_config, check_folder
from lakewright.policy.model_memory import FLOAT_BYTES, check_memory
from lakewright.policy.model_places import is_on_hub, model_place
from lakewright.policy.model_settings import BoardNetworkSettings, ModelName, ModelSettings, shape_of
from lakewright.policy.networks import BoardConfig, BoardNetwork  # registers it for AutoModelForCausalLM

TOKENS, TEXT = "tokens", "text"  # codecs, as config.json names them
LEAST_BYTES = 0.5  # of a weight that is quantised as much as is common
LONGEST_PROBLEM = 300  # letters of what another library says


def build_model(
    settings: ModelSettings | ModelName, tokenizer: PreTrainedTokenizerFast, seed: int, device: str = "auto"
) -> PreTrainedModel:
    """A model with random weights for the tokenizer's vocabulary; its codec is `tokens`.

    device: as for `load_model`.
    """
    check_device(device)
    torch.manual_seed(seed)
    shape, special = shape_of(settings), _special(tokenizer)
    if shape.architecture == "board":
        return _on(device, _board_network(shape.board, special))
    return _on(device, _qwen3(shape, special))


def only_plans(model: PreTrainedModel) -> bool:
    """Whether a model has no answers except plans, so that it cannot be the engineer."""
    return isinstance(model, BoardNetwork)


def _qwen3(settings: ModelSettings, special: dict[str, Any]) -> PreTrainedModel:
    config = Qwen3Config(
        hidden_size=settings.hidden,
        intermediate_size=settings.mlp,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        head_dim=settings.hidden // settings.heads,
        max_position_embeddings=settings.positions,
        tie_word_embeddings=False,
        codec=TOKENS,
        **special,
    )
    return Qwen3(config)


def _board_network(settings: BoardNetworkSettings, special: dict[str, Any]) -> PreTrainedModel:
    return BoardNetwork(BoardConfig(**msgspec.structs.asdict(settings), **special, codec=TOKENS))


def _special(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    """The size of a vocabulary and its special words, as configs name them."""
    return {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def _on(device: str, model: PreTrainedModel) -> PreTrainedModel:
    """The model, on the GPU if there is one and `device` allows it."""
    if device != "cpu" and torch.cuda.is_available():
        cast(torch.nn.Module, model).cuda()
    return model


def save_checkpoint(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    """Writes model (safetensors, its config names the codec) and tokenizer to `folder`, whole or not at all."""
    model.config.codec = codec_of(model)
    with replacing_folder(folder) as beside:
        model.save_pretrained(beside)
        tokenizer.save_pretrained(beside)


def load_checkpoint(
    place: str | Path, codec: str = TOKENS, dtype: torch.dtype = torch.float32, device: str = "auto"
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """As `load_model`, for a checkpoint of `codec`. Raises InputError where it has another codec."""
    model, tokenizer = load_model(place, dtype, device)
    _check_codec(place, codec, model)
    return model, tokenizer


def local_place(name: str | Path) -> str:
    """The folder of the model `name`, or its name on the hub.

    A GGUF file, or the name of an installed package with one, is converted once: see `checkpoint_for`.
    """
    return checkpoint_for(model_place(name))


def load_model(
    place: str | Path, dtype: torch.dtype | Literal["auto"] = torch.float32, device: str = "auto"
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Reads a causal model with its tokenizer: a folder, a name on the hub, or `pretrained`; safetensors only.

    place: what `local_place` takes. A folder of an adapter (peft) is merged into the model that it names. dtype: `auto`
    is that of the file. device: `auto` is the GPU if there is one. Raises InputError where there is no such model or
    device.
    """
    check_device(device)
    place = local_place(place)
    folder, source, on_hub = Path(place), str(Path(place)), is_on_hub(place)
    local = not on_hub or os.environ.get("HF_HUB_OFFLINE") == "1"
    if not on_hub:
        check_folder(folder)
    try:
        if on_hub:
            _check_on_hub(source, local)
        if (folder / ADAPTER).is_file():
            model = _merged(folder, dtype)
        else:
            _check_fits(source, local, dtype)
            given = {"use_safetensors": True, "local_files_only": local, "dtype": dtype}
            model = AutoModelForCausalLM.from_pretrained(source, trust_remote_code=False, **given)
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, local_files_only=local)
    except InputError:
        raise
    except Exception as error:  # transformers trusts the JSON files of a folder, and raises whatever these lead it to
        problem = " ".join(str(error).split())[:LONGEST_PROBLEM] or type(error).__name__
        raise InputError(f"{place}: not a readable checkpoint ({problem}); train it again") from error
    if not tokenizer.is_fast:
        raise InputError(f"{place}: has no tokenizer.json; give a checkpoint folder with model and tokenizer")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    words = cast(PreTrainedTokenizerFast, tokenizer)
    _check_words(place, model, words)
    return _on(device, model), words


def check_shape(settings: ModelSettings | ModelName, tokenizer: PreTrainedTokenizerFast) -> None:
    """Raises InputError where the memory of this machine does not hold a model of that shape."""
    with torch.device("meta"):
        model = build_model(settings, tokenizer, 0, "cpu")
    check_memory("model", model.num_parameters())


def _check_on_hub(name: str, local: bool) -> None:
    """As `check_folder`, for a model of that name on the hub; the weights are asked for as safetensors anyway."""
    if find_adapter_config_file(name, local_files_only=local):  # whose base model would be read unchecked
        raise InputError(f"{name}: is an adapter; run hf download {name} --local-dir FOLDER, and give the folder")
    check_config(name, PreTrainedConfig.get_config_dict(name, local_files_only=local)[0])


def _check_fits(source: str, local: bool, dtype: torch.dtype | Literal["auto"]) -> None:
    """As `check_shape`, for a model whose weights are not read yet."""
    config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=local)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    least = LEAST_BYTES if getattr(config, "quantization_config", None) else FLOAT_BYTES / 2
    check_memory(source, model.num_parameters(), FLOAT_BYTES if dtype == torch.float32 else least)


def check_device(device: str) -> None:
    """Raises InputError where CUDA is asked for and there is none."""
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("device is cuda, but this machine has no CUDA device that torch can use; choose cpu or auto")


def _merged(folder: Path, dtype: torch.dtype | Literal["auto"]) -> PreTrainedModel:
    """The model that an adapter names, with the adapter merged into it."""
    try:
        from peft import PeftConfig, PeftModel
    except ImportError as error:
        raise InputError(f"{folder}: is an adapter, which needs peft; pip install 'lakewright[lora]'") from error
    name = PeftConfig.from_pretrained(str(folder)).base_model_name_or_path
    if (Path(name) / ADAPTER).is_file():
        raise InputError(f"{folder}: {ADAPTER}: its base model {name!r:.60} is an adapter too; merge that one first")
    base, _ = load_model(name, dtype, "cpu")
    return PeftModel.from_pretrained(base, str(folder)).merge_and_unload()


def codec_of(model: PreTrainedModel) -> str:
    """The codec that a checkpoint names; one that names none is a language model."""
    return getattr(model.config, "codec", TEXT)


def _check_codec(place: str | Path, codec: str, model: PreTrainedModel) -> None:
    if codec_of(model) != codec:
        raise InputError(
            f"{place}: config.json: codec is {codec_of(model)!r}, this needs {codec!r}; choose another checkpoint"
        )


def _check_words(place: str | Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    codec = codec_of(model)
    words = {TOKENS: VOCABULARY, BYTES: BYTE_VOCABULARY}.get(codec, ())
    if tokenizer.convert_ids_to_tokens(list(range(len(words)))) != list(words):
        raise InputError(
            f"{place}: tokenizer.json: its words are not those of this version's codec {codec!r}; train it again"
        )
    if len(tokenizer) > model.config.vocab_size:
        raise InputError(
            f"{place}: tokenizer.json has {len(tokenizer)} words, config.json {model.config.vocab_size}; "
            "take both from one checkpoint"
        )
