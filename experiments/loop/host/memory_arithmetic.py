"""The memory of training and sampling as arithmetic, in bytes for each process.

Saved activations are those that transformers' layers (Qwen3, Llama) leave for the backward pass; the tests compare them
with real allocations. h: hidden width, a: heads x their width, k: key-value heads x their width, m: width of the MLP.
"""

import msgspec

from lakewright.experiments.loop.host.model_shape import ModelShape, Widths

FULL, HALF = 4, 2  # bytes of a number
TILE_TOKENS, TILE_WORDS = 4096, 32768  # what TRL's head computes at once (trl.kernels.chunked_logprob)
BUCKET = 500_000_000  # numbers that DeepSpeed gathers and reduces at once, its default
SMALL = 1 << 22  # weights of matrices that a decoder joins, see `decoder_layers.SMALL`
SHARDED = ("zero3", "fsdp1", "fsdp2")


class Sharing(msgspec.Struct, frozen=True):
    """The sharing of a model by processes: a launch config and their number."""

    config: str
    processes: int

    @property
    def masters(self) -> bool:
        """Whether AdamW has weights of its own in full precision, beside those that compute in half."""
        return self.config.startswith(("zero", "fsdp"))

    def part(self, *configs: str) -> int:
        """By how many processes something is divided, if the config is one of these."""
        return self.processes if self.config in configs else 1


class Trained(msgspec.Struct, frozen=True):
    """The trained weights and their optimizer. number: bytes of one. adapter: its weights, 0 if all are trained.

    frozen: weights that are not trained. rounded: whether weights in full precision compute in half (autocast).
    """

    shape: ModelShape
    number: int
    adapter: int
    optimizer: str
    sharing: Sharing
    checkpointing: bool
    on_gpu: bool = False
    frozen: int = 0
    rounded: bool = False

    @property
    def count(self) -> int:
        """Weights that have gradients."""
        return self.adapter or self.shape.parameters - self.frozen

    @property
    def computes(self) -> int:
        """Bytes of a number in the layers."""
        return HALF if self.rounded else self.number


def weights(trained: Trained) -> int:
    """The model, and the adapter in full precision."""
    return trained.shape.parameters * trained.number // trained.sharing.part(*SHARDED) + trained.adapter * FULL


def rounded_weights(trained: Trained) -> int:
    """The matrices that autocast rounds, which it keeps until the end of a step."""
    return trained.shape.matrices * HALF if trained.rounded else 0


def gradients(trained: Trained) -> int:
    """One number for each weight that is trained; plain data parallel training keeps them in buckets too."""
    sharing, number = trained.sharing, FULL if trained.adapter else trained.number
    buckets = 2 if sharing.processes > 1 and not sharing.masters else 1
    return buckets * trained.count * number // sharing.part("zero2", *SHARDED)


def optimizer_state(trained: Trained) -> int:
    """Two moments of AdamW, or one of Muon for matrices and two for the rest; with DeepSpeed and FSDP in full precision
    next to a copy of the weights, divided among the processes.
    """
    shape, sharing = trained.shape, trained.sharing
    if sharing.masters:
        return 3 * FULL * trained.count // sharing.processes
    if trained.adapter:
        return 2 * FULL * trained.adapter
    moments = 2 * trained.count - (shape.matrices if trained.optimizer == "muon" else 0)
    return moments * trained.number


def optimizer_work(trained: Trained) -> int:
    """The memory that a step takes and frees: Muon's stacks of equal matrices; the buckets of DeepSpeed."""
    if trained.sharing.config.startswith("zero"):
        return 2 * min(BUCKET, trained.count) * HALF
    if trained.optimizer == "muon" and not trained.adapter:
        return 6 * trained.shape.stacked * trained.number
    return 0


def saved_activations(trained: Trained, tokens: int, repeats: bool = False) -> int:
    """Activations of `tokens` tokens that layers save until the backward pass; with checkpointing only their inputs.

    repeats: whether keys and values are repeated for each group of heads; they are if there is a mask.
    """
    widths = trained.shape.widths
    assert widths
    layer = widths.hidden * trained.computes if trained.checkpointing else _of_a_layer(trained, widths, repeats)
    return tokens * (widths.layers * layer + 3 * widths.hidden * FULL)


def backward_work(trained: Trained, tokens: int, repeats: bool = False) -> int:
    """The memory that a layer's backward pass takes and frees; with checkpointing it computes the layer again."""
    widths = trained.shape.widths
    assert widths
    again = _of_a_layer(trained, widths, repeats) if trained.checkpointing else 0
    work = (3 * widths.mlp + 2 * widths.hidden) * trained.computes
    read = widths.mlp * FULL if trained.adapter and trained.computes == HALF else 0
    return tokens * (again + work + read)


def _of_a_layer(trained: Trained, widths: Widths, repeats: bool) -> int:
    """Bytes of a token in a layer: two norms, queries and keys with their norms, values, what is attended, the MLP.

    In half precision a norm also keeps its input in full precision, and an adapter inputs of its own. With
    autocast, queries and keys are rotated in full precision, and rounded after that.
    """
    h, a, k, m = widths.hidden, widths.attention, widths.keys, widths.mlp
    pairs = 2 * a if repeats and a > k else 2 * k
    plain = (6 * h + 2 * (a + k) + a + pairs + a + 4 * m) * trained.computes
    norms = (2 * h + a + k) * (FULL - HALF) if trained.computes == HALF else 0
    read = (2 * h + a + m) * trained.computes if trained.adapter and trained.computes == HALF else 0
    turned = 3 * (a + k) * HALF if trained.rounded else 0
    return plain + norms + read + turned


def mask_bytes(rows: int, length: int) -> int:
    """Of the mask of rows of one length, a byte for each pair of tokens."""
    return rows * length * length


def whole_logits(shape: ModelShape, tokens: int, times: int, number: int) -> int:
    """Bytes of the logits of all words for some tokens.

    Args:
        shape: the model's shape.
        tokens: with logits.
        times: how many such arrays there are.
        number: bytes of a number.
    """
    assert shape.widths
    return times * tokens * shape.widths.words * number


def tiled_head(trained: Trained, tokens: int) -> int:
    """TRL's head, which never has all logits: a tile, and the gradients of its matrix and input in full precision."""
    widths = trained.shape.widths
    assert widths
    rows = min(tokens, TILE_TOKENS)
    folded = 0 if trained.on_gpu else 4 * min(widths.words, TILE_WORDS) * FULL  # on a GPU one kernel does it in place
    tile = rows * (TILE_WORDS * trained.number + folded)
    matrix = 0 if trained.adapter else widths.words * widths.hidden * (FULL + trained.number)
    return tile + matrix + tokens * widths.hidden * (FULL + trained.number)


def keys_and_values(shape: ModelShape, tokens: int, number: int) -> int:
    """Of that many tokens, in all layers."""
    assert shape.widths
    return 2 * shape.widths.layers * shape.widths.keys * tokens * number


def repeated_pairs(trained: Trained, tokens: int) -> int:
    """Keys and values of that many tokens in all layers, repeated for each head that reads them."""
    widths = trained.shape.widths
    assert widths
    return 2 * widths.layers * widths.attention * tokens * trained.computes


def joined_matrices(shape: ModelShape) -> int:
    """Weights that a decoder copies next to each other: query, key and value, and gate and up, if small."""
    widths = shape.widths
    assert widths
    parts = (widths.hidden * (widths.attention + 2 * widths.keys), 2 * widths.hidden * widths.mlp)
    return widths.layers * sum(part for part in parts if part <= SMALL)
