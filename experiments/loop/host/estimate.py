"""The memory and disk that a run takes, phase by phase: arithmetic on its settings, before anything is loaded."""

import msgspec

from lakewright.experiments.loop.host.memory_arithmetic import (
    FULL,
    HALF,
    Sharing,
    Trained,
    gradients,
    joined_matrices,
    keys_and_values,
    optimizer_state,
    rounded_weights,
    shared_pairs,
    step_at_its_fullest,
    tiled_head,
    weights,
    whole_logits,
)
from lakewright.experiments.loop.host.model_shape import (
    ModelShape,
    Widths,
    adapter_weights,
    count_weight_bytes,
    model_shape,
)
from lakewright.experiments.loop.host.sequence_lengths import Lengths, longest_sequences
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.policy.inference import (
    ANSWERS_ON_CPU,
    LEAST_SHARED,
    MEMORY_SHARE,
    MOST_ANSWERS,
    count_answer_bytes,
    count_layer_bytes,
)
from lakewright.policy.inference import SCORES as SCORE_ARRAYS
from lakewright.policy.training import STEP, WIDTH, allows_shared_prompts, answers_at_once

GB = 10**9
LIBRARIES = 2 * GB  # of memory, that Python and the training libraries take in a process
PROMPT_ROWS = 64  # answers that a CPU reads together where they share prompts
RECORDED_SCORES = 4  # arrays of scores of a recorded update: as log-probabilities, and what these and entropies take
SCORES = 4  # copies of the scores of an engineer's answers, and their gradients
TOKENS_BATCH = 512  # answers in tokens or bytes that are decoded together


class Phase(msgspec.Struct, frozen=True):
    """One phase of a run: bytes of each item in one process."""

    name: str
    items: dict[str, int]

    @property
    def total(self) -> int:
        """The peak."""
        return sum(self.items.values())


class Estimate(msgspec.Struct, frozen=True):
    """The memory of a run, in bytes.

    on_gpu: whether the arithmetic is for GPUs. phases: in one process each. known: whether activations are among the
    items, which no arithmetic here has for a network on the board. loading: the peak of the host's memory while every
    process holds the model, before it is on its GPU.
    checkpoint: one of them on disk. disk: all of a run, with the most that is saved while a stage trains.
    """

    model: str
    parameters: int
    trained: int
    adapter: bool
    number: str
    on_gpu: bool
    processes: int
    sharing: str
    lengths: Lengths
    phases: tuple[Phase, ...]
    known: bool
    loading: int
    checkpoint: int
    disk: int

    @property
    def peak(self) -> Phase:
        """The phase that takes the most."""
        return max(self.phases, key=lambda phase: phase.total)


def estimate_of(settings: RunSettings, accelerator: int = 80 * GB) -> Estimate:
    """The estimate of a run. accelerator: bytes of one GPU, of which vLLM takes its share beside training.

    Raises InputError if the config of the model cannot be read, or the environment cannot be used.
    """
    shape, lengths = model_shape(settings), longest_sequences(settings)
    trained = _describe_trained(settings, shape)
    phases = [
        *_estimate_warmup(settings, shape, lengths),
        _estimate_sampling(settings, trained, lengths, accelerator),
        _estimate_update(settings, trained, lengths, accelerator),
        _estimate_validation(settings, trained, lengths, accelerator),
        *_estimate_engineer(settings, trained, lengths),
    ]
    checkpoint = shape.parameters * trained.number
    return Estimate(
        model=shape.name,
        parameters=shape.parameters,
        trained=trained.count,
        adapter=trained.adapter > 0,
        number="bf16" if trained.number == HALF else "fp32",
        on_gpu=trained.on_gpu,
        processes=settings.launch.processes,
        sharing=settings.launch.config,
        lengths=lengths,
        phases=tuple(phases),
        known=shape.widths is not None,
        loading=settings.launch.processes * checkpoint,
        checkpoint=checkpoint,
        disk=_estimate_disk(settings, shape, checkpoint),
    )


def estimate_answering(place: str) -> int:
    """Bytes of memory of a process that answers with a saved model, or one on the hub: its weights, and the libraries.

    Raises InputError if the config of the model cannot be read.
    """
    return count_weight_bytes(place) + LIBRARIES


def _describe_trained(settings: RunSettings, shape: ModelShape) -> Trained:
    host = settings.grpo.host
    return Trained(
        shape=shape,
        number=HALF if host.bf16 else FULL,
        adapter=adapter_weights(shape, host.lora.rank) if host.lora else 0,
        optimizer=settings.grpo.optimizer,
        sharing=Sharing(settings.launch.config, settings.launch.processes),
        checkpointing=host.checkpointing,
        on_gpu=settings.device == "cuda",
        frozen=_count_frozen(settings, shape),
        rounded=settings.autocast,
    )


def _count_frozen(settings: RunSettings, shape: ModelShape) -> int:
    return shape.embeddings if settings.freeze_embeddings else 0


def _size_standing(settings: RunSettings, trained: Trained) -> dict[str, int]:
    """The memory that a training process holds all the time."""
    copy, grpo = trained.shape.parameters * trained.number, settings.grpo
    return {
        "weights": weights(trained),
        "optimizer": optimizer_state(trained),
        "average": weights(trained) if grpo.average else 0,
        "reference": copy if grpo.beta and not trained.adapter else 0,
        "rounded weights": rounded_weights(trained),
    }


def _estimate_warmup(settings: RunSettings, shape: ModelShape, lengths: Lengths) -> list[Phase]:
    """All weights that are not frozen, in one process."""
    if not settings.warmup.steps:
        return []
    alone, number = Sharing("none", 1), HALF if settings.grpo.host.bf16 else FULL
    frozen, rounded = _count_frozen(settings, shape), settings.autocast
    optimizer = settings.warmup.optimizer
    trained = msgspec.structs.replace(
        Trained(shape, number, 0, optimizer, alone, checkpointing=False, frozen=frozen, rounded=rounded),
        on_gpu=settings.device == "cuda",
    )
    items = {
        "weights": weights(trained),
        "optimizer": optimizer_state(trained),
        "average": weights(trained),
        "rounded weights": rounded_weights(trained),
    }
    step = WIDTH if trained.on_gpu else 1  # of which the lengths of recorded batches are multiples
    rows, example = settings.warmup.batch, _round_up(lengths.example, step)
    scored = rows * _round_up(lengths.example - lengths.warmup, step)
    logits = whole_logits(shape, scored, 3, number) if shape.widths else 0
    # The same first tokens of all prompts are read once; then there is a mask. A recorded step reads them in each row.
    shared = 0 if trained.on_gpu or lengths.shared < LEAST_SHARED or not shape.widths else lengths.shared
    tokens = shared + rows * (example - shared)
    pairs = shared_pairs(trained, rows * shared, rows * example) if shared else 0
    mask = rows * (example - shared) * example if shared else 0
    work = step_at_its_fullest(trained, tokens, logits, pairs=pairs, mask=mask, held=trained.on_gpu)
    return [Phase("warm-up", items | work | _estimate_recordings(trained, work))]


def _estimate_recordings(trained: Trained, work: dict[str, int]) -> dict[str, int]:
    """The memory of recorded steps on a GPU, which nothing else can use: as much as a step of another shape takes."""
    recorded = sum(size for name, size in work.items() if name != "gradients")
    return {"recordings": recorded} if trained.on_gpu and trained.shape.widths else {}


def _round_up(count: int, step: int) -> int:
    return -(-count // step) * step


def _estimate_update(settings: RunSettings, trained: Trained, lengths: Lengths, accelerator: int) -> Phase:
    """The update of a step, on one micro batch."""
    grpo, shape = settings.grpo, trained.shape
    share = grpo.prompts * grpo.group // settings.launch.processes
    rows = min(grpo.host.micro_batch or share, share)
    items = _size_standing(settings, trained)
    if not shape.widths:
        return Phase("update", items | step_at_its_fullest(trained, 0, 0))
    # Gradients of an earlier micro batch, of a bucket or of a recorded step are there all the time.
    held = rows < share or trained.sharing.processes > 1 or trained.on_gpu
    if _shares_prompts(settings, shape.widths, lengths.answer, accelerator):
        if trained.on_gpu:
            rows = _fit_update(trained, shape.widths, lengths, rows, accelerator - sum(items.values()))
        return Phase("update", items | _share_prompts(trained, lengths, rows, min(rows, grpo.prompts), held=held))
    length = lengths.prompt + lengths.answer
    tokens, mask = rows * length, rows * length * length
    work = step_at_its_fullest(trained, tokens, tiled_head(trained, tokens), mask=mask, held=held)
    return Phase("update", items | work)


def _share_prompts(trained: Trained, lengths: Lengths, rows: int, prompts: int, *, held: bool) -> dict[str, int]:
    """The work of an update that reads each prompt once: on a GPU all rows together, of padded lengths, and recorded.

    Args:
        trained, lengths: from the run.
        rows, prompts: how many a micro batch has.
        held: whether gradients are there from the beginning.
    """
    prompt, answer, on_gpu = lengths.prompt, lengths.answer, trained.on_gpu
    if on_gpu:
        prompt, answer, prompts = (_round_up(count, STEP) for count in (prompt, answer, prompts))
    head = whole_logits(trained.shape, rows * answer, RECORDED_SCORES if on_gpu else 1, FULL)
    head += 0 if on_gpu else whole_logits(trained.shape, min(rows, PROMPT_ROWS) * answer, 3, FULL)
    written = answer - 1  # the last token of an answer predicts nothing, so it is not read
    length = prompt + written
    pairs = shared_pairs(trained, rows * prompt, rows * length)
    work = step_at_its_fullest(
        trained, prompts * prompt + rows * written, head, pairs=pairs, mask=rows * written * length, held=held
    )
    work["gradients"] *= 2 if on_gpu else 1  # where a recorded step holds its own
    return work | _estimate_recordings(trained, work)


def _fit_update(trained: Trained, widths: Widths, lengths: Lengths, rows: int, free: int) -> int:
    """The rows of a micro batch that a GPU computes at once: all, or equal parts that fit half of its free memory."""
    number = HALF if trained.computes == HALF else trained.number
    layer = count_layer_bytes(widths.hidden, widths.attention, widths.mlp, number)
    read, scored = lengths.prompt + lengths.answer, _round_up(lengths.answer, STEP)
    each = read * widths.layers * layer + SCORE_ARRAYS * FULL * scored * widths.words
    most = max(1, min(rows, int(MEMORY_SHARE * free) // each))
    return -(-rows // -(-rows // most))


def _shares_prompts(settings: RunSettings, widths: Widths, answer: int, accelerator: int) -> bool:
    """Return True if the training reads the prompt of a group once. accelerator: bytes of one GPU."""
    grpo, elsewhere, memory = settings.grpo, settings.launch.elsewhere, accelerator * (settings.device == "cuda")
    allowed = allows_shared_prompts(grpo.host, answer, widths.words, elsewhere=elsewhere, memory=memory)
    return grpo.share_prompts and allowed


def _estimate_sampling(settings: RunSettings, trained: Trained, lengths: Lengths, accelerator: int) -> Phase:
    """The sampling of a step, by the process itself or by vLLM beside it."""
    items, grpo = _size_standing(settings, trained), settings.grpo
    if grpo.host.vllm != "off":
        share = round(grpo.host.vllm_memory * accelerator) if grpo.host.vllm == "colocate" else 0
        return Phase("sampling", items | {"vLLM": share})
    groups = grpo.prompts // settings.launch.processes
    widths = trained.shape.widths
    if trained.on_gpu and widths and _shares_prompts(settings, widths, lengths.answer, accelerator):
        items["gradients"] = 2 * gradients(trained)  # which recorded updates hold from step to step
    return Phase("sampling", items | _estimate_decoding(settings, trained, lengths, groups, grpo.group, accelerator))


def _estimate_validation(settings: RunSettings, trained: Trained, lengths: Lengths, accelerator: int) -> Phase:
    """Greedy answers in one process, which trials and the engineer take no more than."""
    problems = make_trainee(settings).count_held_out()
    items = {"weights": trained.shape.parameters * trained.number, "rounded weights": rounded_weights(trained)}
    if settings.text.decoder == "vllm":  # the least: of the free memory it takes nearly all
        pairs = keys_and_values(trained.shape, lengths.held_out + lengths.answer, trained.computes)
        return Phase("validation", items | {"vLLM": trained.shape.parameters * trained.computes + pairs})
    merged = msgspec.structs.replace(trained, adapter=0)
    asked = msgspec.structs.replace(lengths, prompt=lengths.held_out)
    return Phase("validation", items | _estimate_decoding(settings, merged, asked, problems, 1, accelerator))


def _estimate_engineer(settings: RunSettings, trained: Trained, lengths: Lengths) -> list[Phase]:
    """The training of `self_trained`, in one process."""
    shape, engineer = trained.shape, settings.engineer
    if settings.teacher != "self_trained" or not shape.widths:
        return []
    answer = engineer.answer if settings.codec == "text" else lengths.example
    rows = min(engineer.group, answers_at_once(answer, shape.widths.words))
    scored = rows * answer
    tokens = scored + rows * settings.evidence.budget if settings.codec == "text" else scored
    alone = msgspec.structs.replace(trained, optimizer="adamw", sharing=Sharing("none", 1))
    items = {
        "weights": weights(alone),
        "optimizer": optimizer_state(alone),
        "reference": shape.parameters * alone.number,
        "rounded weights": rounded_weights(alone),
    }
    head = whole_logits(shape, scored, SCORES, FULL)
    # Gradients of one group of answers are held while those of the next are computed.
    return [Phase("engineer", items | step_at_its_fullest(alone, tokens, head, held=True))]


def _estimate_decoding(
    settings: RunSettings, trained: Trained, lengths: Lengths, prompts: int, copies: int, accelerator: int
) -> dict[str, int]:
    """Keys and values of the answers that are decoded together, and the logits of their next words."""
    shape, number, computes = trained.shape, trained.number, trained.computes
    if not shape.widths:
        return {}
    prompts = min(prompts, max(1, _count_together(settings, trained, lengths, copies, accelerator) // copies))
    rows = prompts * copies
    read, written = prompts * lengths.prompt, rows * lengths.answer
    reading = read * (4 * shape.widths.hidden + 3 * shape.widths.mlp) * number
    # With autocast, the keys that the model made are in full precision until all of them are rounded.
    made = (number + computes) // 2 + computes if number != computes else computes
    copied = HALF * (shape.matrices + shape.embeddings) if trained.rounded else joined_matrices(shape) * number
    return {
        "keys and values": keys_and_values(shape, read, made) + keys_and_values(shape, written, computes),
        "joined matrices": copied + trained.adapter * computes,
        "logits": whole_logits(shape, rows, 3, FULL) + whole_logits(shape, rows, 1, computes),
        # Of reading the prompts, before anything is written.
        "activations": max(0, reading - keys_and_values(shape, written, computes)),
    }


def _count_together(settings: RunSettings, trained: Trained, lengths: Lengths, copies: int, accelerator: int) -> int:
    """The answers that are decoded together, see `fit_answers`."""
    if settings.codec != "text":
        return TOKENS_BATCH
    if settings.text.batch or not trained.on_gpu:
        return settings.text.batch or ANSWERS_ON_CPU
    shape = trained.shape
    assert shape.widths
    pairs = keys_and_values(shape, 1, trained.number)
    each = count_answer_bytes(pairs, shape.widths.words, lengths.prompt, lengths.answer, copies)
    free = accelerator - sum(_size_standing(settings, trained).values())
    return max(1, min(MOST_ANSWERS, round(MEMORY_SHARE * free) // each))


def _estimate_disk(settings: RunSettings, shape: ModelShape, checkpoint: int) -> int:
    """Checkpoints of the warm-up and of every stage, a trained engineer's, and a training that is saved."""
    stages = settings.stages * (2 if settings.teacher == "self_trained" else 1)
    kept = (4 * shape.parameters - shape.matrices) * FULL if settings.warmup.steps else 0
    return (1 + stages) * checkpoint + max(kept, checkpoint)
