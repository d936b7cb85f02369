"""Where the machine's Chromium is."""

import shutil

PLACES = ("chromium", "chromium-browser", "google-chrome")


def chromium_path() -> str | None:
    """The browser of the journeys; None where there is none."""
    return next((found for name in PLACES if (found := shutil.which(name))), None)
