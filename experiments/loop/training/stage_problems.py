"""The problems of a stage: drawn from its design, chosen by its sampler."""

from lakewright.core_jax.results import Group
from lakewright.core_jax.support import derive_seed
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.samplers import Rollout, Sampler, make_sampler
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import Sampled, read_record, write_record
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts, write_problems
from lakewright.experiments.loop.training.trainee import Trainee

SCORED = 64  # problems rolled out on between two checks of the budget


def make_problems(
    trainee: Trainee, stage: Stage, policy: Stage, before: Stage | None, number: int, tokens: float
) -> None:
    """Writes the problems of stage `number` and their statistics.

    They depend on design and seed alone, unless the sampler uses rollouts. Scoring ends once half of the remaining
    tokens are spent because the rest is for training.

    Args:
        trainee: the run's.
        stage: whose problems are drawn.
        policy: the stage whose policy is to be trained.
        before: the stage before this one, if any.
        number: for this stage.
        tokens: that remain of the budget.
    """
    settings = trainee.settings
    count, sampler = settings.grpo.of_stage(number).boards, _load_sampler(trainee, before, number)
    source = _Source(trainee, stage.design(), policy, number, tokens / 2)
    key = make_key(derive_seed(settings.seed, f"stage {number} sampler"))
    drawn = sampler.draw(count, source, source.score_problems, key)
    statistics = trainee.count_problems(drawn.problems, source.acceptance)
    figures = {"fresh": drawn.fresh, "scored": drawn.scored, "replayed": drawn.replayed, "tokens": source.tokens}
    record = Sampled(statistics, settings.sampler.name, figures, sampler.state_dict())
    write_record(stage.sampled, record, lake=trainee.lake)
    write_problems(trainee.problems_file(stage), drawn.problems)


def _load_sampler(trainee: Trainee, before: Stage | None, number: int) -> Sampler:
    """The sampler, with what it learned from the stages so far."""
    sampler = make_sampler(trainee.settings.sampler.name, trainee.settings.sampler.options)
    if before is not None:
        sampler.load_state_dict(read_record(before.sampled, Sampled).state)
        sampler.learn(read_rollouts(before), number - 1, trainee.environment)
    return sampler


class _Source:
    """Fresh problems and their scores for samplers; counts what they cost."""

    def __init__(self, trainee: Trainee, design: Design, policy: Stage, number: int, allowance: float) -> None:
        self.trainee, self.design, self.policy, self.allowance = trainee, design, policy, allowance
        self.environment: Environment = trainee.environment
        self.purpose = f"stage {number} boards"
        self.drawn = self.tokens = self.scorings = 0
        self.acceptance: list = []

    def __call__(self, count: int, design: Design | None = None) -> list[Problem]:
        """The next `count` problems of the stage's design, or of another one."""
        seed, noun = derive_seed(self.trainee.settings.seed, self.purpose), self.environment.space.words.problems
        with progress(noun, count, noun) as bar:
            problems, acceptance = self.trainee.draw_problems(
                design or self.design, count, seed, self.drawn, bar.update
            )
        self.drawn += count
        self.acceptance += acceptance
        return problems

    def score_problems(self, problems: list[Problem]) -> list[Rollout]:
        """Each problem with a group of answers of the current policy, until the allowance of tokens is spent."""
        settings, groups = self.trainee.settings, list[Group]()
        with progress("scores", len(problems) * settings.sampler.plans, self.trainee.answers) as bar:
            for begin in range(0, len(problems), SCORED):
                if self.tokens >= self.allowance:
                    break
                seed = derive_seed(settings.seed, f"{self.purpose} scores {self.scorings}")
                part = problems[begin : begin + SCORED]
                found, tokens = self.trainee.roll_out(
                    self.policy.onward, part, settings.sampler.plans, seed, bar.update
                )
                groups += found
                self.scorings += 1
                self.tokens += tokens
        return list(zip(problems, groups, strict=False))
