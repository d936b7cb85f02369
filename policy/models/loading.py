"""The reading of saved models: safetensors with a tokenizer; files, memory and every weight are checked."""

import os
from pathlib import Path
from typing import Literal, cast

import torch
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import find_adapter_config_file

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import check_listed
from lakewright.policy.codecs.problem_codec import BYTE_VOCABULARY, BYTES
from lakewright.policy.codecs.tokens import VOCABULARY
from lakewright.policy.models.building import TOKENS, get_codec, use_torch_defaults
from lakewright.policy.models.devices import check_device, place_on_device
from lakewright.policy.models.folders import (
    ADAPTER,
    ADAPTER_MODEL,
    check_config,
    check_folder,
    is_on_hub,
    resolve_place,
)
from lakewright.policy.models.gguf_files import convert_gguf
from lakewright.policy.models.weights import (
    FLOAT_BYTES,
    check_weight_memory,
    check_weights,
    compare_shapes,
    read_weights,
)

LEAST_BYTES = 0.5  # of a weight that is quantised as much as is common
LONGEST_PROBLEM = 300  # letters of what another library says


def load_checkpoint(
    place: str | Path, codec: str = TOKENS, dtype: torch.dtype = torch.float32, device: str = "auto"
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load a checkpoint of `codec` with its tokenizer.

    Args:
        place, dtype, device: see `load_model`.
        codec: the codec that the checkpoint must name.

    Raises InputError as `load_model`, and if the checkpoint has another codec.
    """
    model, tokenizer = load_model(place, dtype, device)
    check_codec(place, codec, model)
    return model, tokenizer


def prepare_place(name: str | Path) -> str:
    """Return the folder of the model `name`, or its name on the hub.

    A GGUF file, or the name of an installed package with one, is converted once: see `convert_gguf`.
    """
    return convert_gguf(resolve_place(name))


@use_torch_defaults()
def load_model(
    place: str | Path, dtype: torch.dtype | Literal["auto"] = torch.float32, device: str = "auto"
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load a causal model with its tokenizer: a folder, a name on the hub, or `pretrained`; safetensors only.

    An adapter (peft) is merged into the model that it names.

    Args:
        place: see `prepare_place`.
        dtype: the type of the weights; `auto` is the file's type.
        device: `auto` is the GPU if there is one.

    Raises InputError if the model or the device does not exist, or if a weight is missing, unknown, or not a finite
    number.
    """
    check_device(device)
    place = prepare_place(place)
    folder, source, on_hub = Path(place), str(Path(place)), is_on_hub(place)
    local = not on_hub or os.environ.get("HF_HUB_OFFLINE") == "1"
    if not on_hub:
        check_folder(folder)
    try:
        if on_hub:
            _check_on_hub(source, local)
        if not (folder / ADAPTER).is_file():
            _check_fit(source, local, dtype)
        model = read_model(source, dtype, local)
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
    if not on_hub:
        check_listed(folder)
    return place_on_device(device, model), words


def read_model(
    source: str | Path, dtype: torch.dtype | Literal["auto"] = "auto", local: bool = True
) -> PreTrainedModel:
    """Read the weights of a folder or of a name on the hub, all checked; an adapter is merged into its model.

    Args:
        source: the folder or name.
        dtype: see `load_model`.
        local: fetch nothing.

    Raises InputError as `check_weights`, and any error of transformers.
    """
    if (Path(source) / ADAPTER).is_file():
        return _merge_adapter(Path(source), dtype)
    return read_weights(source, use_safetensors=True, local_files_only=local, dtype=dtype)


def _check_on_hub(name: str, local: bool) -> None:
    """Check a model on the hub as `check_folder` does; its weights are requested as safetensors anyway."""
    if find_adapter_config_file(name, local_files_only=local):  # whose base model would be read unchecked
        raise InputError(f"{name}: is an adapter; run hf download {name} --local-dir FOLDER, and give the folder")
    check_config(name, PreTrainedConfig.get_config_dict(name, local_files_only=local)[0])


def _check_fit(source: str, local: bool, dtype: torch.dtype | Literal["auto"]) -> None:
    """Check the memory as `check_shape` does, for a model whose weights are not read yet."""
    config = AutoConfig.from_pretrained(source, trust_remote_code=False, local_files_only=local)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    least = LEAST_BYTES if getattr(config, "quantization_config", None) else FLOAT_BYTES / 2
    check_weight_memory(source, model.num_parameters(), FLOAT_BYTES if dtype == torch.float32 else least)


def _merge_adapter(folder: Path, dtype: torch.dtype | Literal["auto"]) -> PreTrainedModel:
    """Return the model that an adapter names, with the adapter merged into it."""
    try:
        from peft import PeftConfig, PeftModel, get_peft_model_state_dict
    except ImportError as error:
        raise InputError(f"{folder}: is an adapter, which needs peft; pip install 'lakewright[lora]'") from error
    config = PeftConfig.from_pretrained(str(folder))
    name = config.base_model_name_or_path
    if (Path(name) / ADAPTER).is_file():
        raise InputError(f"{folder}: {ADAPTER}: its base model {name!r:.60} is an adapter too; merge that one first")
    base, _ = load_model(name, dtype, "cpu")
    names = getattr(base, "_checkpoint_conversion_mapping", {})  # of layers that had other names once
    # PeftModel.from_pretrained does the same, but only warns of what is missing.
    tuned = PeftModel(base, config)
    loaded = tuned.load_adapter(str(folder), "default", key_mapping=names, ignore_mismatched_sizes=True)
    there = load_file(folder / ADAPTER_MODEL)
    wanted = get_peft_model_state_dict(tuned, save_embedding_layers=False)
    check_weights(
        folder,
        there.items(),
        missing=[key.replace(".default.", ".") for key in loaded.missing_keys],  # as the file names them
        unexpected=[key.replace(".default.", ".") for key in loaded.unexpected_keys],
        mismatched=compare_shapes(_map_shapes(there), _map_shapes(wanted)),
        owner="this adapter",
    )
    return tuned.merge_and_unload()


def _map_shapes(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def check_codec(place: str | Path, codec: str, model: PreTrainedModel) -> None:
    """Raise InputError if a model is of another codec."""
    if get_codec(model) != codec:
        raise InputError(
            f"{place}: config.json: codec is {get_codec(model)!r}, this needs {codec!r}; choose another checkpoint"
        )


def _check_words(place: str | Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
    codec = get_codec(model)
    known = {TOKENS: VOCABULARY, BYTES: BYTE_VOCABULARY}.get(codec, ())
    if tokenizer.convert_ids_to_tokens(list(range(len(known)))) != list(known):
        raise InputError(
            f"{place}: tokenizer.json: its words differ from this version's codec {codec!r}; train it again"
        )
    if len(tokenizer) > model.config.vocab_size:
        raise InputError(
            f"{place}: tokenizer.json has {len(tokenizer)} words, config.json {model.config.vocab_size}; "
            "take both from one checkpoint"
        )
