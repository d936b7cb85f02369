"""The boards of a stage: drawn from its config, chosen by its sampler."""

from collections.abc import Callable

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.config import EnvConfig, with_teams
from lakewright.core_jax.generator import Acceptance, generate_in_turn
from lakewright.core_jax.results import Group
from lakewright.core_jax.rows import Row, rows_in_turn, write_rows
from lakewright.engineer.samplers import Rollout, Sampler, make_sampler
from lakewright.experiments.loop.records import Sampled, Stage, read, read_rollouts, statistics_of_boards, write
from lakewright.experiments.loop.settings import RunSettings, key_for, seed_for
from lakewright.experiments.loop.training.policies import load_policy
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import codec_for
from lakewright.policy.tasks import Task, row_of, task_of
from lakewright.policy.training import roll_out

SCORED = 64  # boards rolled out on between two checks of the budget


def make_boards(
    settings: RunSettings, stage: Stage, policy: Stage, before: Stage | None, number: int, tokens: float
) -> None:
    """Writes the boards of stage `number` and their statistics.

    They depend on config and seed alone, unless the sampler uses rollouts of `policy`, which is to be trained, or of
    the stage `before`. Scoring ends once half of the remaining `tokens` are spent, as the rest is for training.
    """
    count, sampler = settings.grpo.of_stage(number).boards, _sampler(settings, before, number)
    source = _Source(settings, stage.config(), policy, number, tokens / 2)
    drawn = sampler.draw(count, source, source.score, key_for(settings.seed, f"stage {number} sampler"))
    sizes = statistics_of_boards(drawn.rows, source.acceptance)
    figures = {"fresh": drawn.fresh, "scored": drawn.scored, "replayed": drawn.replayed, "tokens": source.tokens}
    write(stage.sampled, Sampled(sizes, settings.sampler.name, figures, sampler.state_dict()))
    write_rows(stage.boards, drawn.rows)


def keep_boards(settings: RunSettings, stage: Stage, taken: list[Task]) -> None:
    """Keeps the boards that were drawn while the stage was trained, and their statistics."""
    rows = [row_of(task, f"drawn_{place:07d}") for place, task in enumerate(taken)]
    figures = {"fresh": len(rows), "scored": 0, "replayed": 0, "tokens": 0}
    write(stage.sampled, Sampled(statistics_of_boards(rows, []), settings.sampler.name, figures, {}))
    write_rows(stage.boards, rows)


def _sampler(settings: RunSettings, before: Stage | None, number: int) -> Sampler:
    """The sampler, with what it learned from the stages so far."""
    sampler = make_sampler(settings.sampler.name, settings.sampler.options)
    if before is not None:
        sampler.load_state_dict(read(before.sampled, Sampled).state)
        sampler.learn(read_rollouts(before), number - 1)
    return sampler


class _Source:
    """Fresh boards and their scores for samplers; counts what they cost."""

    def __init__(self, settings: RunSettings, config: EnvConfig, policy: Stage, number: int, allowance: float) -> None:
        self.settings, self.config, self.policy, self.allowance = settings, config, policy, allowance
        self.purpose = f"stage {number} boards"
        self.drawn = self.tokens = self.scorings = 0
        self.acceptance: list[Acceptance] = []

    def __call__(self, count: int, config: EnvConfig | None = None) -> list[Row]:
        """The next `count` boards of the stage's config, or of another one; its teams alternate."""
        seed = seed_for(self.settings.seed, self.purpose)
        configs = with_teams(config or self.config, self.settings.teams)
        with progress("boards", count, "boards") as bar:
            made = generate_in_turn(configs, seed, count, bar.update, self.drawn)
        self.drawn += count
        self.acceptance += [part for batches in made for batch in batches.values() for part in batch.acceptance]
        return rows_in_turn(made, configs)

    def score(self, rows: list[Row]) -> list[Rollout]:
        """Each board with a group of plans of the current policy, until the allowance of tokens is spent."""
        model, tokenizer = load_policy(self.settings, self.policy.onward)
        groups: list[Group] = []
        with progress("scores", len(rows) * self.settings.sampler.plans, "plans") as bar:
            for begin in range(0, len(rows), SCORED):
                if self.tokens >= self.allowance:
                    break
                groups += self._roll_out(model, tokenizer, rows[begin : begin + SCORED], bar.update)
        return list(zip(rows, groups, strict=False))

    def _roll_out(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        rows: list[Row],
        on_progress: Callable[[int], None],
    ) -> list[Group]:
        codec = codec_for(self.settings.codec, tokenizer, self.settings.text)
        groups, tokens = roll_out(
            model,
            BoardPlay(codec, self.settings.horizon, self.settings.reward),
            [task_of(row) for row in rows],
            self.settings.sampler.plans,
            temperature=self.settings.grpo.temperature,
            seed=seed_for(self.settings.seed, f"{self.purpose} scores {self.scorings}"),
            on_progress=on_progress,
        )
        self.scorings += 1
        self.tokens += tokens
        return groups
