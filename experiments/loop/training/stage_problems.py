"""The problems of a stage, drawn from its design and chosen by its sampler, which may roll some out first."""

from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import derive_seed
from lakewright.engineer.design import Design
from lakewright.engineer.problems import Problem
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.samplers import Rollout, Sampler, Supply, make_sampler
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import SampledRecord, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts, write_problems
from lakewright.experiments.loop.training.trainee import Trainee

MOST_DRAWN = 1 << 40
SCORED = 64  # problems rolled out on between two checks of the budget


def make_problems(trainee: Trainee, stage: Stage, policy: Stage, before: Stage, number: int, tokens: float) -> None:
    """Writes the problems of stage `number` and their statistics.

    They depend on design and seed alone, unless the sampler uses rollouts. Scoring ends once half of the remaining
    tokens are spent because the rest is for training.

    Args:
        trainee: the run's trainee.
        stage: the stage whose problems are drawn.
        policy: the stage whose policy is to be trained.
        before: the stage before this one, or the warm-up.
        number: number of the stage.
        tokens: the tokens that remain of the budget.
    """
    settings = trainee.settings
    count, sampler = settings.grpo.of_stage(number).boards, _load_sampler(trainee, before, number)
    source = _Source(trainee, stage.design(), before, policy, number, tokens / 2)
    key = make_key(derive_seed(settings.seed, f"stage {number} sampler"))
    drawn = sampler.draw(count, source, source.score_problems, key)
    statistics = trainee.count_problems(drawn.problems, source.acceptance)
    figures = {"fresh": drawn.fresh, "scored": drawn.scored, "replayed": drawn.replayed, "tokens": source.tokens}
    if drawn.barren:
        figures["barren"] = len(drawn.barren)
    record = SampledRecord(statistics, settings.sampler.name, figures, sampler.state_dict())
    trainee.write_record(stage.sampled, record)
    write_problems(trainee.problems_file(stage), drawn.problems)


def _load_sampler(trainee: Trainee, before: Stage, number: int) -> Sampler:
    """The sampler, with its state from the stages so far."""
    sampler = make_sampler(trainee.settings.sampler.name, trainee.settings.sampler.options)
    if number:
        sampler.load_state_dict(read_record(before.sampled, SampledRecord).state)
        sampler.learn(read_rollouts(before), number - 1, trainee.environment)
    return sampler


class _Source(Supply):
    """Fresh problems and their scores for samplers; counts what they cost."""

    def __init__(
        self, trainee: Trainee, design: Design, before: Stage, policy: Stage, number: int, allowance: float
    ) -> None:
        self.trainee, self.policy, self.allowance = trainee, policy, allowance
        self.purpose = f"stage {number} boards"
        seed = derive_seed(trainee.settings.seed, self.purpose)
        super().__init__(trainee.environment, design, seed, range(MOST_DRAWN), before.read_forecast())
        self.tokens = self.scorings = 0
        self.acceptance: list = []

    def draw(self, design: Design, count: int, seed: int, first: int) -> list[Problem]:
        """Like `Supply.draw`, by the trainee."""
        noun = self.environment.space.words.problems
        with progress(noun, count, noun) as bar:
            problems, acceptance = self.trainee.draw_problems(design, count, seed, first, bar.update)
        self.acceptance += acceptance
        return problems

    def score_problems(self, problems: list[Problem]) -> list[Rollout]:
        """Each problem with a group of answers of the current policy, until the allowance of tokens is spent."""
        settings, groups = self.trainee.settings, list[RolloutGroup]()
        answers = self.trainee.environment.space.words.answers
        with progress("scores", len(problems) * settings.sampler.plans, answers) as bar:
            for begin in range(0, len(problems), SCORED):
                if self.tokens >= self.allowance:
                    break
                seed = derive_seed(settings.seed, f"{self.purpose} scores {self.scorings}")
                part = problems[begin : begin + SCORED]
                scored, tokens = self.trainee.roll_out(
                    self.policy.onward, part, settings.sampler.plans, seed, bar.update
                )
                groups += scored
                self.scorings += 1
                self.tokens += tokens
        return list(zip(problems, groups, strict=False))
