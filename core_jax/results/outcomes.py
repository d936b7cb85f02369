"""Outcomes of a batch of plans: counts of valid and optimal ones, and of each failure."""

from collections.abc import Iterable

import msgspec
import numpy as np

from lakewright.core_jax.terms import FAILURE_NAMES, Failure


class BoardOutcomes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Counts over some boards.

    valid plans; valid plans whose makespan (sum of costs) is the board's optimum; failures by name of `Failure`; and
    boards and valid plans among the boards on which every optimal plan waits.
    """

    boards: int
    valid: int
    optimal_makespan: int
    optimal_sum_of_costs: int
    failures: dict[str, int]
    wait_boards: int
    wait_valid: int

    @classmethod
    def count(
        cls, failure: np.ndarray, optimal_makespan: np.ndarray, optimal_sum_of_costs: np.ndarray, waits: np.ndarray
    ) -> "BoardOutcomes":
        """Counts B plans.

        Args:
            failure: int [B], a `Failure` of each plan.
            optimal_makespan: bool [B], whether a plan that is valid reaches the optimal makespan.
            optimal_sum_of_costs: bool [B], likewise of the sum of costs.
            waits: bool [B], whether the plan's board requires a wait.
        """
        valid = failure == Failure.NONE
        return cls(
            boards=len(failure),
            valid=int(valid.sum()),
            optimal_makespan=int((valid & optimal_makespan).sum()),
            optimal_sum_of_costs=int((valid & optimal_sum_of_costs).sum()),
            failures={name: int((failure == code).sum()) for code, name in enumerate(FAILURE_NAMES) if code},
            wait_boards=int(waits.sum()),
            wait_valid=int((valid & waits).sum()),
        )

    def rate(self, count: int) -> float:
        """A count as a share of all boards; 0 without boards."""
        return count / self.boards if self.boards else 0.0


def pool(parts: Iterable[BoardOutcomes]) -> BoardOutcomes:
    """The outcomes of several batches as one."""
    parts = list(parts)

    def total(field: str) -> int:
        return sum(getattr(part, field) for part in parts)

    return BoardOutcomes(
        boards=total("boards"),
        valid=total("valid"),
        optimal_makespan=total("optimal_makespan"),
        optimal_sum_of_costs=total("optimal_sum_of_costs"),
        failures={name: sum(part.failures.get(name, 0) for part in parts) for name in FAILURE_NAMES[1:]},
        wait_boards=total("wait_boards"),
        wait_valid=total("wait_valid"),
    )


def without(whole: BoardOutcomes, part: BoardOutcomes) -> BoardOutcomes:
    """The outcomes of the boards of `whole` that are not in `part`."""
    counts = {
        field: getattr(whole, field) - getattr(part, field)
        for field in BoardOutcomes.__struct_fields__
        if field != "failures"
    }
    failures = {name: count - part.failures.get(name, 0) for name, count in whole.failures.items()}
    return BoardOutcomes(**counts, failures=failures)
