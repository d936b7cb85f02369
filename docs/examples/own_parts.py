"""A teacher and a sampler of one's own: docs/own-teacher.md explains them."""

from lakewright.engineer import Proposal
from lakewright.engineer.proposal import propose_rows
from lakewright.engineer.samplers import Sampled


class Longer:
    """Moves a tenth of the data from the first stratum to the last in each round."""

    def __init__(self, step: float = 0.1) -> None:
        self.step, self.rounds = step, 0

    def propose(self, evidence, design, space, key) -> Proposal:
        self.rounds += 1
        first, *_, last = design.strata
        moved = min(self.step, design.strata[first]["share"])
        rows = {
            **design.strata,
            first: {**design.strata[first], "share": design.strata[first]["share"] - moved},
            last: {**design.strata[last], "share": design.strata[last]["share"] + moved},
        }
        return propose_rows(design, rows, "longer sums", space)

    def state_dict(self) -> dict:
        return {"rounds": self.rounds}

    def load_state_dict(self, state: dict) -> None:
        self.rounds = state.get("rounds", 0)


class Twice:
    """Draws twice as many problems, and trains on those with the longest prompts."""

    def __init__(self) -> None:
        self.stages = 0

    def draw(self, count, fresh, score, key) -> Sampled:
        drawn = sorted(fresh(2 * count), key=lambda problem: -len(problem.prompt))
        return Sampled(drawn[:count], fresh=2 * count)

    def learn(self, rollouts, stage, environment) -> None:
        self.stages += 1

    def state_dict(self) -> dict:
        return {"stages": self.stages}

    def load_state_dict(self, state: dict) -> None:
        self.stages = state.get("stages", 0)
