"""A cap on what requests cost, kept while many of them are on their way."""

import secrets
import threading
from collections.abc import Callable, Iterable

import msgspec

from lakewright.core_jax.support import Natural


class BudgetSpentError(Exception):
    """The next request might exceed the cost cap."""


class Charge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens that a server may bill for one try of a request: the most before it is sent, later what it took."""

    attempt: str
    tokens_in: Natural
    tokens_out: Natural


def charged(charges: Iterable[Charge]) -> tuple[int, int]:
    """The tokens in and out of all tries; of each the last charge counts."""
    last = {charge.attempt: charge for charge in charges}.values()
    return sum(charge.tokens_in for charge in last), sum(charge.tokens_out for charge in last)


class CostCap:
    """Dollars spent, and reserved for tries on their way, which together never exceed the cap.

    spent: dollars at first. record: gets every charge before it counts, to keep it where a kill does not reach.
    """

    def __init__(
        self, cap: float | None, price: Callable[[int, int], float], spent: float, record: Callable[[Charge], object]
    ) -> None:
        self.spent, self._held = spent, 0.0
        self._cap, self._price, self._record = cap, price, record
        self._lock = threading.Lock()

    def begin(self, tokens_in: int, tokens_out: int) -> Charge | None:
        """Reserves the most that a try may cost; None where that would exceed the cap."""
        most = self._price(tokens_in, tokens_out)
        with self._lock:
            if self._cap is not None and self.spent + self._held + most > self._cap:
                return None
            charge = Charge(secrets.token_hex(8), tokens_in, tokens_out)
            self._record(charge)
            self._held += most
            return charge

    def end(self, charge: Charge, tokens_in: int, tokens_out: int) -> None:
        """Replaces a reservation by what the try took."""
        taken = Charge(charge.attempt, tokens_in, tokens_out)
        with self._lock:
            if taken != charge:
                self._record(taken)
            self._held -= self._price(charge.tokens_in, charge.tokens_out)
            self.spent += self._price(tokens_in, tokens_out)
