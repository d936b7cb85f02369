"""The settings of a run: their parts, their checks, and how they are loaded from a preset with overrides."""

from typing import Annotated, Any, Literal

import msgspec

from lakewright.core_jax.support import Count, HoleRatio, Natural, Share, Team, Weight, convert, one_of
from lakewright.engineer.difficulty import DifficultySettings, Objective
from lakewright.engineer.evidence import EvidenceSettings
from lakewright.engineer.guard import GuardSettings
from lakewright.engineer.lessons import Lessons, LessonSettings
from lakewright.engineer.rollback import RollbackSettings
from lakewright.engineer.samplers import SamplerSettings
from lakewright.engineer.teachers import TEACHERS, check_teacher
from lakewright.engineer.trial import ProposalReward, TrialSettings
from lakewright.experiments.jobs.runtime.named_values import set_value
from lakewright.experiments.loop.settings.lake_settings import FIRST, LAKE_ONLY, check_run_boards, leave_out
from lakewright.experiments.loop.settings.launch import LaunchSettings
from lakewright.experiments.loop.settings.older_settings import rename_word
from lakewright.experiments.preset_files import read_preset
from lakewright.policy.codecs import CodecName, TextSettings
from lakewright.policy.inference import EndpointSettings
from lakewright.policy.model_settings import ModelName, ModelSettings, resolve_shape
from lakewright.policy.models import is_board_network
from lakewright.policy.training import AnswerTraining, GrpoSettings, RewardSettings, WarmupSettings


class RunGuard(GuardSettings, frozen=True, forbid_unknown_fields=True):
    """The legal region, and how far one round may go. Raises InputError on a value outside its range."""

    floor: float | None = 0.05
    """Least share of a stratum, 0 to 1."""
    widen: float = 0.0
    """How much larger a change may be if the difficulty model is certain: the factor is 1 + widen x certainty; at least
    0."""


class ValidationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The held-out set, the same for every seed of a run.

    With `teams` it has boards for each of them too, except those that cannot be drawn, which are left out.
    """

    hole_ratios: Annotated[tuple[HoleRatio, ...], msgspec.Meta(min_length=1)] = (0.1, 0.2, 0.3, 0.4)
    """Hole ratios of the held-out boards."""
    wait_ratios: Annotated[tuple[Share, ...], msgspec.Meta(min_length=1)] = (0.25, 0.5, 0.75)
    """Wait ratios of the held-out boards."""
    boards: Count = 20
    """Boards for each size, hole ratio and wait ratio."""
    seed: Natural = 20260617
    """Seed of the held-out boards, independent of the run's seed."""


class QuestionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Questions to the engineer, above all to a language model."""

    reasoning: Natural = 1024
    """Most tokens of a checkpoint's free reasoning."""
    answer: Count = 2048
    """Most tokens of its JSON answer."""
    temperature: Weight = 0.7
    """Temperature of the answer."""
    proposals: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """How many changes the teacher proposes, to be tried side by side."""
    group: Annotated[int, msgspec.Meta(ge=2, le=256)] = 8
    """How many answers `self_trained` samples."""
    reward: ProposalReward = ProposalReward()
    """The reward of the answers of `self_trained`."""
    training: AnswerTraining = AnswerTraining()
    """How `self_trained` is trained on its answers."""
    asked_first: bool = False
    """Whether the first stage is redesigned, too, from the held-out answers after the warm-up."""
    asked_again: bool = False
    """Whether, without a trial, the next stage uses the answer of `self_trained` after its training, not its answer
    from before."""
    endpoint: EndpointSettings | None = None
    """The server of the teacher `endpoint`."""
    key: bool = True
    """Whether that server needs a key."""


class RunSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a run depends on."""

    environment: str = "lake"
    """The environment that draws problems: lake, reasoning_gym:TASK, FILE.py:Class, module:Class, or an entry point."""
    design: dict[str, dict[str, float]] = {}
    """Shares and knobs of the first stage by stratum, of the lake `data_ratio`, `hole_ratio` and `wait_ratio` by map
    size; by default equal and in the middle."""
    warmup_design: dict[str, dict[str, float]] = {}
    """The design of the warm-up; by default all cells of the grid are drawn alike, or the lake's usual boards."""
    agents: Count = 2
    """Of the lake: agents on a board."""
    warmup_agents: Count = 2
    """Of the lake: agents on a board of the warm-up."""
    teams: tuple[Team, ...] = ()
    """Of the lake: numbers of agents that boards have in turn, wherever they are drawn, in place of both."""
    seed: Natural = 0
    """Seed of everything random in the run."""
    stages: Count = 3
    """Stages of training, each followed by a redesign of the boards."""
    teacher: Annotated[str, one_of(TEACHERS)] = "self"
    """Who redesigns the boards."""
    teacher_options: dict[str, Any] = {}
    """Options of the teacher: keyword arguments of its class."""
    horizon: Count = 16
    """Longest plan, in steps, that the policy may answer with."""
    codec: CodecName = "tokens"
    """The form of prompts and answers: a token for each cell, or text."""
    text: TextSettings = TextSettings()
    """Prompts and answers of the codec text."""
    exclude: str = ""
    """A file of boards that are never trained on, also not rotated, mirrored or with their agents in another order."""
    start: str = ""
    """The first model, instead of random weights: a folder, a name on the hub, or `pretrained`."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the policy runs; cuda refuses to run without a GPU."""
    autocast: bool = False
    """Whether to compute in bfloat16 with float32 weights, which is faster on processors with such instructions."""
    freeze_embeddings: bool = False
    """Whether to leave the embeddings untrained; they are a large part of a small language model."""
    launch: LaunchSettings = LaunchSettings()
    """The training processes."""
    model: ModelSettings | ModelName = ModelSettings()
    """The shape of a model with random weights, or the name of a shape."""
    warmup: WarmupSettings = WarmupSettings()
    """Supervised learning before the first stage."""
    lessons: LessonSettings = LessonSettings()
    """The lessons in which the warm-up teaches a token model to be an engineer."""
    grpo: GrpoSettings = GrpoSettings()
    """Reinforcement learning in each stage."""
    reward: RewardSettings = RewardSettings()
    """The parts of the reward of an answer."""
    validation: ValidationSettings = ValidationSettings()
    """The held-out problems."""
    evidence: EvidenceSettings = EvidenceSettings()
    """The evidence that an engineer sees."""
    difficulty: DifficultySettings = DifficultySettings()
    """The difficulty model and how it is fitted."""
    guard: RunGuard = RunGuard()
    """The limits of a redesign."""
    sampler: SamplerSettings = SamplerSettings()
    """How the problems of a stage are chosen."""
    trial: TrialSettings = TrialSettings()
    """How proposals are tried before training."""
    rollback: RollbackSettings = RollbackSettings()
    """When a stage is rolled back."""
    budget: Count | None = None
    """The most generated tokens in training, in trials and by the engineer; the run ends at the step that spends the
    last token, or after its stages."""
    engineer: QuestionSettings = QuestionSettings()
    """Questions to a language model that is the engineer."""

    @property
    def lake(self) -> bool:
        """Return True if the run is of the lake."""
        return self.environment == "lake"

    @property
    def objective(self) -> Objective:
        """The worth of problems in this run's training: regret if groups hold the certified plan, else learnability."""
        if self.difficulty.objective == "auto":
            return "regret" if self.grpo.guided else "learnability"
        return self.difficulty.objective

    @property
    def taught(self) -> Lessons:
        """The lessons of the engineer's part that the warm-up teaches a model of tokens."""
        return self.lessons.build_lessons(self.objective, self.evidence, self.difficulty)

    @property
    def teaches_engineer(self) -> bool:
        """Return True if the warm-up teaches the engineer's part in tokens, to models that can answer more than plans.

        A byte model learns it only if it will be the engineer, because evidence looks nothing like its problems.
        """
        return self.codec == "tokens" or (self.codec == "bytes" and self.asks_checkpoint)

    @property
    def asks_checkpoint(self) -> bool:
        """Return True if the teacher is a checkpoint of this run, the current one or the warm-up's."""
        return self.asked in ("self", "self_trained", "base")

    @property
    def answers_in_json(self) -> bool:
        """Return True if the teacher is a checkpoint that answers in JSON under a mask, which needs llguidance."""
        return self.codec == "text" and self.asks_checkpoint

    @property
    def system_turn(self) -> str:
        """The setting, with its value, that makes a language model get a system turn; empty without one."""
        asked = f"teacher {self.teacher}" if self.asks_checkpoint else ""
        return asked or ("text.prompt compact" if self.text.prompt == "compact" else "")

    @property
    def asked(self) -> str:
        """The teacher that proposes: the one that `matched_random` matches, if it is the teacher."""
        return self.teacher_options.get("match", self.teacher)

    def __post_init__(self) -> None:
        self._check_teacher()
        if self.lake:
            for name in ("design", "warmup_design"):
                if not getattr(self, name):
                    msgspec.structs.force_setattr(self, name, FIRST)
            check_run_boards(self)
        self._check_codec()

    def _check_teacher(self) -> None:
        check_teacher(self.teacher, self.teacher_options)
        if self.asked == "endpoint" and not self.engineer.endpoint:
            raise ValueError("teacher endpoint has no server; give engineer.endpoint.url and engineer.endpoint.model")
        if self.asks_checkpoint and self._begins_with_board_network():
            named = f"start {self.start:.60}" if self.start else "model.architecture board"
            raise ValueError(
                f"teacher is {self.teacher}, but {named} is a board network and can only answer with plans; choose a "
                "teacher that isn't a checkpoint, such as difficulty"
            )

    def _check_codec(self) -> None:
        if self.grpo.fresh and self.sampler.name != "fresh":
            raise ValueError(
                f"sampler.name is {self.sampler.name}, but grpo.fresh takes boards as they are drawn; drop one"
            )
        if self.codec == "tokens" and self.warmup.steps:
            self.lessons.check(self.evidence)
        if self.codec == "text" and self.warmup.steps and (self.launch.elsewhere or self.grpo.host.lora):
            raise ValueError(
                f"warmup.steps is {self.warmup.steps}, but the warm-up trains all weights in one process; give "
                "warmup.steps=0, or neither launch nor grpo.host.lora"
            )
        if self.codec == "text" and not self.start:
            raise ValueError("codec is text, but start names no model; give a folder or a name on the hub")

    def _begins_with_board_network(self) -> bool:
        """Return True if the start is known to be a board network before the model is read."""
        return is_board_network(self.start) if self.start else resolve_shape(self.model).architecture == "board"


def load_settings(preset: str, overrides: list[str]) -> RunSettings:
    """A preset with overrides such as `grpo.steps=10`; `null` empties an optional setting.

    The boards of a preset are left out if an override names another environment than the lake.

    Raises InputError naming the setting, its value and the remedy.
    """
    raw = read_preset(preset)
    lake = not any(one.startswith("environment=") and one != "environment=lake" for one in overrides)
    if not lake:
        raw = leave_out(raw, ("design", "warmup_design", *LAKE_ONLY))
    return _convert_with(overrides, raw, f"preset {preset}", lake=lake)


def replace_teacher(settings: RunSettings, teacher: str, overrides: list[str]) -> RunSettings:
    """Settings with another teacher, its options the default, and overrides.

    Raises InputError naming the setting, its value and the remedy.
    """
    raw = msgspec.to_builtins(settings, str_keys=True)
    if teacher != settings.teacher:
        raw |= {"teacher": teacher, "teacher_options": {}}
    return _convert_with(overrides, raw, "settings", lake=settings.lake)


def _convert_with(overrides: list[str], raw: dict[str, Any], place: str, *, lake: bool) -> RunSettings:
    for override in overrides:
        for word in rename_word(override, lake=lake):
            set_value(raw, word, "grpo.steps=10")
    return convert(raw, RunSettings, place)


def merge_tables(raw: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A table with the values of another, table by table; neither is altered."""
    merged = raw | changes
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(raw.get(name), dict):
            merged[name] = merge_tables(raw[name], value)
    return merged
