"""The settings of training. Reading and checking them loads neither torch nor a trainer."""

from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from lakewright.core_jax.support import Count, HoleRatio, Natural, Positive, Share, Weight

# Tokens times words of the answers of an engineer whose gradient is computed together: a language model reads thousands
# of tokens of evidence before each, which is work enough for any device.
ANSWER_SCORES = 1 << 24
SHARED_SCORES = 1 << 22  # tokens of an answer times words: the most at which a CPU reads the prompts of a group once
SCORE_BYTES = 20  # of a token and a word in an update: five arrays of float32
LEAST_SCORED = 32  # answers whose scores must fit into half of a GPU's memory, so that it reads prompts once


class WarmupSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Length and speed of the warm-up on certified plans."""

    steps: Natural = 900
    """Steps of supervised learning on certified plans."""
    boards: Count = 20000
    """Boards that are drawn for the warm-up and seen repeatedly."""
    batch: Count = 64
    """Examples in each step."""
    optimizer: Literal["muon", "adamw"] = "muon"
    """Muon for the matrices and AdamW for all other weights, or AdamW for all, as is usual for language models."""
    matrix_rate: Positive = 2e-3
    """Learning rate of the matrices."""
    other_rate: Positive = 2e-3
    """Learning rate of all other weights."""
    decay: Share = 0.99
    """Decay of the averaged weights, which are the result."""
    extra_share: Share = 0.125
    """Share of each batch that are the caller's own examples, if there are any."""
    extra_from: Share = 0.0
    """The share of the warm-up after which batches include these examples; until then they hold only boards."""
    augment: bool = True
    """Whether boards are randomly rotated and mirrored and their agents exchanged."""
    fresh: bool = False
    """Whether boards are drawn while training, instead of repeating `boards`."""
    hole_ratios: tuple[HoleRatio, ...] = ()
    """Hole ratios that take turns in fresh boards; by default, as in warmup_design."""
    minutes: Positive | None = None
    """Ends the warm-up if its steps do not end it earlier; the rates fall towards the nearer end."""


class RewardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of the reward of an answer, each at most its weight.

    An answer that cannot be parsed earns 0. One that breaks a rule earns `parsed` and the share of its steps before
    `legal`. One that breaks no rule but leaves agents away earns `parsed + legal` and of `home` the share of agents on
    their goals. A valid plan earns `valid` and `cost` / (1 + what its sum of costs is beyond the optimum).
    """

    parsed: Weight = 0.1
    """Reward of an answer that can be parsed."""
    legal: Weight = 0.2
    """Reward of legal moves: the share of the steps before the first broken rule."""
    home: Weight = 0.2
    """Reward of arrivals: the share of agents that end on their goals."""
    valid: Weight = 0.7
    """Reward of a valid plan."""
    cost: Weight = 0.3
    """Reward of low cost: divided by 1 + the sum of costs beyond the optimum."""

    def reward_valid_plan(self, excess: Any) -> Any:
        """The reward of a valid plan, a number or an array as `excess`: its sum of costs beyond the optimum."""
        return self.valid + self.cost / np.maximum(1 + excess, 1)


class LoraSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An adapter of low rank on every linear layer (peft), merged into the weights at the end of a stage."""

    rank: Count = 32
    """Rank of the adapter."""
    alpha: Count = 64
    """Scale of the adapter, as alpha / rank."""


class HostSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The use of a machine."""

    micro_batch: Count | None = None
    """Answers that a process trains on at once; by default its whole share."""
    bf16: bool = False
    """Whether to compute in bfloat16."""
    checkpointing: bool = False
    """Whether activations are recomputed instead of stored, which saves memory."""
    lora: LoraSettings | None = None
    """Train an adapter of low rank instead of all weights."""
    vllm: Literal["off", "colocate", "server"] = "off"
    """Who samples: the training process itself, vLLM next to it, or a server of `trl vllm-serve`."""
    vllm_url: str | None = None
    """The server's address, for vllm=server."""
    vllm_memory: Share = 0.3
    """Share of each GPU's memory that vLLM takes, for vllm=colocate."""
    report_to: Literal["none", "tensorboard", "wandb", "trackio"] = "none"
    """Where figures are also reported; a stage's train.jsonl is always written."""

    def __post_init__(self) -> None:
        if (self.vllm == "server") != (self.vllm_url is not None):
            raise ValueError(
                f"vllm is {self.vllm!r} and vllm_url {self.vllm_url!r}; set the url if vllm is server, and only then"
            )


def allows_shared_prompts(host: HostSettings, answer: int, words: int, *, elsewhere: bool, memory: int = 0) -> bool:
    """Return True if a transformer may read the prompt of a group once: one process trains the model itself, on short
    answers.

    Args:
        host: the use of the machine.
        answer: tokens of the longest answer.
        words: the size of the vocabulary.
        elsewhere: whether training runs in processes of its own.
        memory: bytes of the GPU that trains; 0 for a CPU.
    """
    wrapped = host.lora or host.checkpointing or host.vllm != "off" or elsewhere
    most = memory // (2 * LEAST_SCORED * SCORE_BYTES) if memory else SHARED_SCORES
    return answer * words <= most and not wrapped


class GrpoSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage of GRPO: `steps` updates, each on `prompts` boards with `group` completions per board.

    loss_type, scale_rewards, epsilon and epsilon_high are as in TRL's GRPOConfig.
    """

    steps: Count = 32
    """Updates in a stage."""
    first_steps: Count | None = None
    """Updates in the first stage, if it should be shorter; each later stage has twice as many, up to `steps`."""
    prompts: Count = 32
    """Boards in each update."""
    group: Annotated[int, msgspec.Meta(ge=2)] = 8
    """Completions sampled for each board."""
    learning_rate: Positive = 8e-5
    """Learning rate of the updates."""
    temperature: Positive = 1.0
    """Temperature of the sampled completions."""
    beta: Weight = 0.0
    """Weight of the KL penalty against the model at the start of the stage; 0 drops it."""
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo"] = "dapo"
    """How the loss is normalised, see TRL's GRPOConfig."""
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """Over what rewards are scaled by their standard deviation."""
    epsilon: Positive = 0.2
    """Clipping range of the probability ratio."""
    epsilon_high: Positive | None = None
    """Upper clipping range, if it differs from epsilon."""
    oversample: Count = 1
    """Up to this many times `prompts` boards are sampled in a step, and boards whose completions all earn the same are
    left out; 1 uses all boards."""
    fresh: bool = False
    """Whether boards are drawn while training."""
    minutes: Positive | None = None
    """Ends the stage if its steps do not end it earlier."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """AdamW, or Muon for the matrices."""
    schedule: Literal["constant", "cosine"] = "constant"
    """A constant learning rate, or a rate that rises and falls as in the warm-up."""
    average: Share = 0.0
    """Decay of averaged weights, which replace the last weights: after n steps at most (1 + n) / (10 + n). With 0, the
    last weights are the result."""
    share_prompts: bool = True
    """Whether the prompt of a group is read once, if possible."""
    guided: bool = False
    """Whether one answer of each group is the board's certified plan."""
    host: HostSettings = HostSettings()
    """Use of the machine."""

    def __post_init__(self) -> None:
        if (self.first_steps or 0) > self.steps:
            raise ValueError(
                f"first_steps is {self.first_steps}, more than steps {self.steps}; choose at most {self.steps}"
            )
        if self.guided and self.host.vllm != "off":
            raise ValueError(
                f"guided is true, but host.vllm {self.host.vllm} weighs answers by its own probabilities; use one"
            )

    def of_stage(self, number: int) -> "GrpoSettings":
        """Return the settings of stage `number`, from 0, with its own number of updates."""
        if not self.first_steps:
            return self
        doubled = self.first_steps << min(number, self.steps.bit_length())  # no longer than need be
        return msgspec.structs.replace(self, steps=min(self.steps, doubled), first_steps=None)

    @property
    def boards(self) -> int:
        """Boards that a stage may need: each is seen once."""
        return self.steps * self.prompts * self.oversample


class AnswerTraining(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The training of a model on its own answers to one prompt."""

    rate: Positive = 3e-4
    """Learning rate of AdamW."""
    updates: Count = 2
    """Steps on one group."""
    rounds: Count = 8
    """Groups that are sampled and trained on in a stage, one after another."""
    kl: Weight = 0.05
    """Weight of the divergence from the reference."""
    epsilon: Positive = 0.2
    """Clipping range of PPO."""


def answers_at_once(tokens: int, words: int) -> int:
    """Return how many answers an engineer is trained on together; one or two for a language model.

    `tokens` is the length of each, `words` the size of the vocabulary.
    """
    return max(1, ANSWER_SCORES // (tokens * words))
