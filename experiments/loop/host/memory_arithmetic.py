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
    """The memory that the backward pass takes and frees beside saved activations: of the last norm, or of a layer.

    The first layer that it meets has the gradients of two arrays of its MLP and of its output, when the arrays of the
    last norm are freed. With checkpointing it computes a layer again from its saved input.
    """
    widths = trained.shape.widths
    assert widths
    hidden, freed = widths.hidden, 3 * widths.hidden * FULL
    again = _of_a_layer(trained, widths, repeats) - hidden * trained.computes if trained.checkpointing else 0
    read = widths.mlp * FULL if trained.adapter and trained.computes == HALF else 0
    layer = again + (2 * widths.mlp + hidden) * trained.computes + read - freed
    return tokens * max(4 * hidden * FULL, layer)


def _of_a_layer(trained: Trained, widths: Widths, repeats: bool) -> int:
    """Bytes of a token in a layer: two norms, queries and keys with their norms, values, what is attended, the MLP.

    In half precision a norm also keeps its input in full precision. With an adapter norms are not trained and keep one
    array less; in half precision each of its seven matrices has an input of its own in full precision, instead of the
    inputs in half. With autocast, queries and keys are rotated in full precision, and rounded after that.
    """
    h, a, k, m = widths.hidden, widths.attention, widths.keys, widths.mlp
    pairs = 2 * a if repeats and a > k else 2 * k
    plain = (6 * h + 2 * (a + k) + a + pairs + a + 4 * m) * trained.computes
    own = trained.adapter > 0 and trained.computes == HALF
    untrained = (2 * h + a + k + own * (2 * h + m)) * trained.computes if trained.adapter else 0
    norms = (2 * h + a + k) * (FULL - HALF) if trained.computes == HALF else 0
    read = own * (5 * h + a + m) * FULL
    turned = 3 * (a + k) * HALF if trained.rounded else 0
    return plain - untrained + norms + read + turned


def mask_bytes(trained: Trained, pairs: int, layers: int) -> int:
    """A mask of that many pairs of tokens: a byte for each, and its numbers in some of the layers."""
    return pairs * (1 + layers * trained.computes)


def whole_logits(shape: ModelShape, tokens: int, times: int, number: int) -> int:
    """Bytes of the logits of all words for some tokens.

    Args:
        shape: the model's shape.
        tokens: the number of tokens with logits.
        times: the number of such arrays.
        number: bytes of a number.
    """
    assert shape.widths
    return times * tokens * shape.widths.words * number


def tiled_head(trained: Trained, tokens: int) -> int:
    """TRL's head, which never has all logits: a tile, and the gradients of its matrix and input in full precision."""
    widths = trained.shape.widths
    assert widths
    rows = min(tokens, TILE_TOKENS)
    # Seven arrays of scores and one of bits; on a GPU one kernel does it in place.
    folded = 0 if trained.on_gpu else min(widths.words, TILE_WORDS) * (7 * FULL + 1)
    tile = rows * (TILE_WORDS * trained.number + folded)
    matrix = 0 if trained.adapter else widths.words * widths.hidden * (FULL + trained.number)
    return tile + matrix + tokens * widths.hidden * (FULL + trained.number)


def keys_and_values(shape: ModelShape, tokens: int, number: int) -> int:
    """Bytes of keys and values of that many tokens, in all layers."""
    assert shape.widths
    return 2 * shape.widths.layers * shape.widths.keys * tokens * number


def repeated_pairs(trained: Trained, tokens: int) -> int:
    """Keys and values of that many tokens in all layers, repeated for each head that reads them under a mask."""
    widths = trained.shape.widths
    assert widths
    repeats = trained.on_gpu or widths.attention > widths.keys
    return repeats * 2 * widths.layers * widths.attention * tokens * trained.computes


def joined_matrices(shape: ModelShape) -> int:
    """Weights that a decoder copies next to each other: query, key and value, and gate and up, if small."""
    widths = shape.widths
    assert widths
    parts = (widths.hidden * (widths.attention + 2 * widths.keys), 2 * widths.hidden * widths.mlp)
    return widths.layers * sum(part for part in parts if part <= SMALL)


def step_at_its_fullest(
    trained: Trained, tokens: int, head: int, pairs: int = 0, mask: int = 0, held: bool = False
) -> dict[str, int]:
    """The memory of a step at its fullest moment: at the head, in the layers' backward pass, or in the update.

    Gradients come as activations go, so only held gradients are there beside all activations.

    Args:
        trained: the model under training.
        tokens: the number of tokens that are read.
        head: bytes that the head needs.
        pairs: bytes of keys and values that are not in the layers' own activations.
        mask: pairs of tokens in the mask.
        held: whether all gradients exist from the beginning.
    """
    widths = trained.shape.widths
    repeats = mask > 0 and not pairs
    kept = saved_activations(trained, tokens, repeats) if widths else 0
    work = backward_work(trained, tokens, repeats) if widths else 0
    masked = widths.layers if widths and not trained.checkpointing else 0  # layers that hold its numbers
    whole = gradients(trained)
    first = whole if held else min(whole, _head_gradient(trained))
    there = {"gradients": first, "activations": kept, "keys and values": pairs}
    moments = [
        there | {"logits": head, "mask": mask_bytes(trained, mask, masked)},
        there | {"backward": work, "mask": mask_bytes(trained, mask, max(masked, 1))},
        {"gradients": whole, "update of weights": optimizer_work(trained)},
    ]
    return max(moments, key=lambda moment: sum(moment.values()))


def _head_gradient(trained: Trained) -> int:
    """Bytes of the gradient of the head's matrix, which is there first; tied with the embedding or not."""
    widths = trained.shape.widths
    return 0 if trained.adapter or trained.frozen or not widths else widths.words * widths.hidden * trained.number


def shared_pairs(trained: Trained, shared: int, read: int) -> int:
    """Bytes of keys and values that rows have from a shared reading, and of those that are repeated for heads.

    Args:
        trained: the model.
        shared: tokens of all rows that are read only once.
        read: tokens of all rows.
    """
    return keys_and_values(trained.shape, shared, trained.number) + repeated_pairs(trained, read)
