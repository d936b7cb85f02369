"""A cap on what requests cost, kept while many of them are on their way."""

import threading


class BudgetSpentError(Exception):
    """The next request might exceed the cost cap."""


class CostCap:
    """Dollars spent, and reserved for answers on their way, which together never exceed the cap."""

    def __init__(self, cap: float | None, spent: float) -> None:
        self.spent, self._held, self._cap = spent, 0.0, cap
        self._lock = threading.Lock()

    def reserve(self, most: float) -> bool:
        """Reserves the most that a request may cost; False where that would exceed the cap."""
        with self._lock:
            if self._cap is not None and self.spent + self._held + most > self._cap:
                return False
            self._held += most
            return True

    def settle(self, most: float, cost: float) -> None:
        """Replaces a reservation by what the request did cost."""
        with self._lock:
            self._held -= most
            self.spent += cost
