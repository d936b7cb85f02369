"""Model folders: the place of a model by its name, and checks of a folder's files before its weights are read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert
from lakewright.policy.model_settings import BOARD_NETWORK, BoardNetworkSettings

PRETRAINED = "pretrained"  # the name of the weights of this package; ./pretrained is a folder of the user's own
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
ADAPTER = "adapter_config.json"
MODEL, ADAPTER_MODEL, INDEX = "model.safetensors", "adapter_model.safetensors", ".safetensors.index.json"
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")  # weights that may run code when they are read
MOST_WORDS = 4096  # of a board network, which gives logits for all of them at each place
# The largest values of fields of a language model, far beyond any known one. Reading a config allocates what it says.
MOST = {
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers"), 1024),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "n_head"), 1024),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 1024),
    **dict.fromkeys(("hidden_size", "head_dim", "n_embd", "d_model"), 1 << 16),
    **dict.fromkeys(("intermediate_size", "moe_intermediate_size", "n_inner", "vocab_size"), 1 << 20),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 1 << 24),
    "r": 1 << 14,  # the rank of an adapter
}


def resolve_place(name: str | Path) -> str | Path:
    """Return the folder of the model `name`, or its name on the hub.

    The name `pretrained` always means the weights of the package, whatever folders there are; a Path is a folder.
    """
    return Path(__file__).parents[1] / PRETRAINED if name == PRETRAINED else name


def is_on_hub(name: str | Path) -> bool:
    """Return True if a model must be fetched by its name."""
    place = resolve_place(name)
    return HUB_NAME.fullmatch(str(place)) is not None and not Path(place).exists()


def is_board_network(place: str | Path) -> bool:
    """Return True if the config of a model folder names a board network; False if it cannot be read."""
    try:
        raw = _read_json(Path(resolve_place(place)) / "config.json")
    except (OSError, InputError):
        return False
    return isinstance(raw, dict) and raw.get("model_type") == BOARD_NETWORK


def check_folder(folder: Path) -> None:
    """Raise InputError if a model folder lacks a file or holds one that is never read."""
    adapter = (folder / ADAPTER).is_file()
    _check_file(folder, ADAPTER if adapter else "config.json")
    _check_weights(folder, ADAPTER_MODEL if adapter else MODEL)
    _check_file(folder, "tokenizer.json")
    check_configs(folder)


def check_configs(folder: Path) -> None:
    """Raise InputError if a config in the folder asks for code or for absurd sizes."""
    for file in sorted(folder.glob("*config*.json")):  # config.json may name another, such as config.4.0.0.json
        raw = _read_json(file)
        if isinstance(raw, dict):
            check_config(file, raw)


def find_weights_file(place: str | Path, tensor: str) -> str | Path:
    """Return the file of a model folder that holds `tensor`, or that should; any other place unchanged."""
    folder = Path(place)
    if not folder.is_dir():
        return place
    if (folder / ADAPTER).is_file():
        return folder / ADAPTER_MODEL
    if (folder / MODEL).is_file():
        return folder / MODEL
    for index in sorted(folder.glob(f"*{INDEX}")):
        return folder / _read_json(index).get("weight_map", {}).get(tensor, index.name)
    return folder


def _check_file(folder: Path, name: str) -> None:
    if not (folder / name).is_file():
        raise InputError(f"{folder}: no {name}; give a checkpoint folder with model and tokenizer")


def _check_weights(folder: Path, name: str) -> None:
    """Check that the weights are safetensors, in one file or in the files of an index."""
    indices = sorted(folder.glob(f"*{INDEX}"))
    for index in indices:
        raw = _read_json(index)
        shards = raw.get("weight_map") if isinstance(raw, dict) else None
        for shard in shards.values() if isinstance(shards, dict) else ():
            _check_safe(index, shard)
    pickled = [file.name for file in sorted(folder.iterdir()) if file.suffix in PICKLED]
    if pickled and not indices and not (folder / name).is_file():
        raise InputError(
            f"{folder}: no {name}, and {pickled[0]:.60} may run code when it is read; save the weights as safetensors"
        )
    if name != MODEL or not indices:
        _check_file(folder, name)


def _check_safe(file: str | Path, weights: Any) -> None:
    if not str(weights).endswith((".safetensors", INDEX)) or "/" in str(weights):
        raise InputError(f"{file}: {weights!r:.60} is not a safetensors file beside it; save the weights as such")


def check_config(file: str | Path, raw: dict[str, Any]) -> None:
    """Raise InputError if the config that a file holds asks for code or for absurd sizes."""
    if raw.get("auto_map"):
        raise InputError(
            f"{file}: auto_map asks for code of the folder, which is never run; choose a model that transformers knows"
        )
    if "transformers_weights" in raw:  # the file that is read instead of the usual one
        _check_safe(file, raw["transformers_weights"])
    if raw.get("model_type") == BOARD_NETWORK:
        shape = {name: raw[name] for name in BoardNetworkSettings.__struct_fields__ if name in raw}
        convert(shape, BoardNetworkSettings, str(file))
    for name, value in _walk_fields(raw):
        most = MOST_WORDS if name == "vocab_size" and raw.get("model_type") == BOARD_NETWORK else MOST.get(name)
        if most and isinstance(value, int | float) and value > most:
            raise InputError(f"{file}: {name} is {value!r:.40}; choose a model with at most {most}")


def _walk_fields(raw: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a config and of those within it, such as text_config."""
    waiting = [raw]
    while waiting:
        fields = waiting.pop()
        yield from fields.items()
        waiting += [value for value in fields.values() if isinstance(value, dict)]


def _read_json(file: Path) -> Any:
    """Return the JSON of a file, read as transformers reads it. Raises InputError on anything else."""
    try:
        return json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file.parent}: not a readable checkpoint ({file.name}: {error}); train it again") from error
