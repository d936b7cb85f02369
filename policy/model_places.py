"""Where a model is, by the name that is given for it: a folder, the hub, or the weights that come with the package."""

import re
from pathlib import Path

PRETRAINED = "pretrained"  # the name of the weights beside this file; ./pretrained is a folder of the user's own
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def model_place(name: str | Path) -> str | Path:
    """The folder of the model `name`, or its name on the hub.

    The name `pretrained` always means the weights of the package, whatever folders there are; a Path is a folder.
    """
    return Path(__file__).parent / PRETRAINED if name == PRETRAINED else name


def is_on_hub(name: str | Path) -> bool:
    """Whether a model must be fetched by its name."""
    place = model_place(name)
    return HUB_NAME.fullmatch(str(place)) is not None and not Path(place).exists()
