"""A GGUF file is converted once, to the checkpoint of the same model; what cannot be is refused in one line."""

import importlib.metadata
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM

from lakewright.core_jax.errors import InputError
from lakewright.policy.models import gguf_files, load_model
from lakewright.policy.models.gguf_files import convert_gguf
from tests.support.models.gguf_model import write_gguf
from tests.support.models.small_language_model import language
from tests.support.refusals import refused

PROMPT = "Number of agents: 2."


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches" / gguf_files.CONVERTED


def test_the_checkpoint_says_what_the_file_says(file, kept):
    model, tokenizer = load_model(file)
    (folder,) = kept.iterdir()
    assert {path.name for path in folder.iterdir()} >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert tokenizer.encode(PROMPT) == language().encode(PROMPT)
    assert tokenizer.chat_template == language().chat_template
    ids = torch.tensor([tokenizer.encode(PROMPT)])
    direct = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    assert torch.equal(model(input_ids=ids).logits, direct(input_ids=ids).logits)


def test_a_file_is_converted_once(file, monkeypatch):
    first = convert_gguf(file)
    monkeypatch.setattr(gguf_files, "_convert_file", lambda *_: pytest.fail("converted again"))
    assert convert_gguf(file) == first


def full_disk(*_):
    raise OSError("full")


def test_a_conversion_that_is_cut_off_leaves_nothing(file, kept, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr("transformers.PreTrainedModel.save_pretrained", full_disk)
        with pytest.raises(OSError, match="full"):
            convert_gguf(file)
    assert list(kept.iterdir()) == []
    assert Path(convert_gguf(file)).is_dir()


def test_a_package_that_carries_a_file_names_its_model(file, monkeypatch):
    carried = [SimpleNamespace(suffix=".gguf", locate=lambda: file), SimpleNamespace(suffix=".py")]
    monkeypatch.setattr(importlib.metadata, "files", {"some-model": carried}.__getitem__)
    assert convert_gguf("some-model") == convert_gguf(file)


def test_other_places_are_left_alone(tmp_path):
    for place in (str(tmp_path), "Qwen/Qwen3-4B", "runs/nowhere"):
        assert convert_gguf(place) == place


REFUSED = {
    "a file that is not there": ("nowhere.gguf", ["nowhere.gguf", "no such file"]),
    "a package that is not there": ("no-such-model", ["no-such-model", "folder"]),
    "a package without a model": ("pytest", ["pytest:", "0 GGUF files"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_model_is_refused(name):
    place, problem = REFUSED[name]
    with refused(*problem):
        load_model(place)


def test_an_architecture_that_cannot_be_converted_is_refused(tmp_path):
    with refused("other.gguf:", "'rwkv6'"):
        load_model(write_gguf(tmp_path / "other.gguf", architecture="rwkv6"))


@pytest.mark.parametrize("length", [0, 3, 500])
def test_half_a_file_is_refused(file, tmp_path, length):
    (tmp_path / "half.gguf").write_bytes(file.read_bytes()[:length])
    with refused("half.gguf:", "GGUF"):
        load_model(tmp_path / "half.gguf")


def numbers(*values: int, kind: str = "Q") -> bytes:
    return struct.pack(f"<{len(values)}{kind}", *values)


def text(letters: str) -> bytes:
    return numbers(len(letters)) + letters.encode()


def header(*fields: bytes, tensors: bytes = b"", claimed: int = 0) -> bytes:
    """A header of fields and tensors; claimed: so many more fields than there are."""
    counts = numbers(bool(tensors), len(fields) + claimed)
    return b"GGUF" + numbers(3, kind="I") + counts + b"".join(fields) + tensors


STRING, ARRAY, BYTE, ENDLESS = 8, 9, 0, (1 << 63) - 1
LLAMA = text("general.architecture") + numbers(STRING, kind="I") + text("llama")
HOSTILE = {
    "an array without end": header(LLAMA, text("many") + numbers(ARRAY, BYTE, kind="I") + numbers(ENDLESS)),
    "an array in arrays": header(
        LLAMA, text("deep") + numbers(*[ARRAY] * 2, kind="I") + (numbers(1) + numbers(ARRAY, kind="I")) * 5000
    ),
    "a word without end": header(text("general.architecture") + numbers(STRING, kind="I") + numbers(ENDLESS)),
    "fields without end": header(LLAMA, claimed=ENDLESS),
    "a name that is no UTF-8": header(numbers(2) + b"\xff\xff"),
    "an architecture that is a number": header(text("general.architecture") + numbers(BYTE, kind="I") + b"\x01"),
    "a tensor of so many numbers that their count begins again": header(
        LLAMA, tensors=text("w") + numbers(2, kind="I") + numbers(1 << 32, 1 << 32) + numbers(0, kind="I") + numbers(0)
    ),
    "a tensor of so many dimensions": header(LLAMA, tensors=text("w") + numbers((1 << 32) - 1, kind="I")),
    "a tensor of a kind that nobody knows": header(
        LLAMA, tensors=text("w") + numbers(1, kind="I") + numbers(1) + numbers(999, kind="I") + numbers(0)
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_header_that_claims_what_is_not_there_is_refused_in_one_line(tmp_path, name):
    (tmp_path / "hostile.gguf").write_bytes(HOSTILE[name])
    with pytest.raises(
        InputError, match=r"hostile\.gguf: (not a whole GGUF file; fetch it again|its architecture)"
    ) as refused:
        load_model(tmp_path / "hostile.gguf")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("error", [MemoryError, OverflowError, RecursionError, AssertionError])
def test_whatever_reading_a_header_raises_is_one_line(file, monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr("gguf.GGUFReader._build_tensors", fail)
    with refused("tiny.gguf:", "GGUF"):
        load_model(file)


@pytest.mark.parametrize("bound", ["MOST_PARTS", "MOST_LETTERS"])
def test_a_header_of_too_many_parts_or_letters_is_refused(file, monkeypatch, bound):
    monkeypatch.setattr(f"lakewright.policy.models.gguf_files.{bound}", 100)
    with refused("tiny.gguf:", "GGUF"):
        load_model(file)


def test_a_file_beyond_the_memory_is_refused_before_it_is_converted(file, monkeypatch):
    monkeypatch.setattr("lakewright.policy.models.weights.psutil.virtual_memory", lambda: SimpleNamespace(total=4096))
    monkeypatch.setattr(gguf_files, "_convert_file", lambda *_: pytest.fail("converted"))
    with refused("tiny.gguf: ", "GiB", "GiB"):
        load_model(file)


@pytest.mark.parametrize(
    ("claimed", "said"),
    [
        ({"block_count": 3_000_000}, "num_hidden_layers is 3000000; choose a model with at most 1024"),
        ({"embedding_length": 1 << 30}, "hidden_size is 1073741824; choose a model with at most 65536"),
        ({"embedding_length": 1 << 16, "feed_forward_length": 1 << 20, "block_count": 1024}, "choose a smaller model"),
    ],
)
def test_a_config_of_absurd_size_is_refused_whatever_tensors_there_are(tmp_path, claimed, said):
    with pytest.raises(InputError) as refused:
        load_model(write_gguf(tmp_path / "absurd.gguf", **claimed))
    assert str(refused.value).startswith(f"{tmp_path}/absurd.gguf: ")
    assert str(refused.value).endswith(said)


def test_a_file_is_hashed_in_pieces(file, monkeypatch):
    monkeypatch.setattr(Path, "read_bytes", lambda *_: pytest.fail("a whole file was read"))
    assert Path(convert_gguf(file)).is_dir()


def test_a_file_that_lacks_its_weights_is_refused_in_one_line(file, tmp_path):
    (tmp_path / "cut.gguf").write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(InputError, match=r"cut\.gguf: .*(not a whole GGUF file|cannot be converted)") as refused:
        load_model(tmp_path / "cut.gguf")
    assert "\n" not in str(refused.value)
