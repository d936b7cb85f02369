"""What workers are sent to do, and die of; they import nothing for it."""

import os
import signal
import time
from pathlib import Path


def noted(folder: Path, item: str) -> str:
    """Notes that an item was begun, and does what it says: `die`, `die once`, find a `full disk`, or be `slow`."""
    begun = len(notes(folder, (item,))[item])
    (folder / f"{item}.{begun}").touch()
    if item == "die" or (item == "die once" and not begun):
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "full disk":
        raise OSError(28, "No space left on device", "shard.parquet")
    if item.startswith("slow"):
        time.sleep(0.05)
    return item.upper()


def notes(folder: Path, items: tuple[str, ...]) -> dict[str, list[Path]]:
    """How often each item was begun."""
    return {item: sorted(folder.glob(f"{item}.*")) for item in items}
