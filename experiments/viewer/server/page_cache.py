"""A cache of finished pages, as long as what they show has not changed."""

import threading
from collections import OrderedDict
from typing import NamedTuple

MOST_LETTERS = 1 << 25  # of all cached pages together


class _CachedPage(NamedTuple):
    stamp: str
    html: str


class PageCache:
    """The pages last asked for, by their address; as many as fit in MOST_LETTERS."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, _CachedPage] = OrderedDict()
        self._lock = threading.Lock()
        self._letters = 0

    def find_page(self, address: str, stamp: str) -> str | None:
        """The page, if it was cached under the same stamp."""
        with self._lock:
            cached = self._pages.get(address)
            if cached is None or cached.stamp != stamp:
                return None
            self._pages.move_to_end(address)
            return cached.html

    def keep_page(self, address: str, stamp: str, html: str) -> None:
        """Caches a page; the least recently used ones are dropped for it."""
        with self._lock:
            if before := self._pages.pop(address, None):
                self._letters -= len(before.html)
            self._pages[address] = _CachedPage(stamp, html)
            self._letters += len(html)
            while self._letters > MOST_LETTERS:
                self._letters -= len(self._pages.popitem(last=False)[1].html)
