"""The context modules: which parts of the evidence an engineer is shown, and the named presets."""

from typing import Annotated

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, one_of


class Modules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which parts of the evidence are shown; the default is the paper's V6 (arXiv 2606.17682).

    failures: outcomes per map size and wait stratum, of this round and of those in the history. guideline: what good
    redesigns do. history: earlier rounds. default_in_history: round 0, the default config, is one of them.
    self_summary: the engineer's own summary of the round before. bookkeeping: the round's index, the number of
    rounds and of boards. rl_details: settings and figures of the training, and its rollouts by cell. statistics: what
    was really sampled. cases: a few boards with a failed plan. difficulty: what the difficulty
    model expects of cells, drawn or not. shuffled, a control: each size shows the figures of another.
    """

    failures: bool = True
    guideline: bool = True
    history: bool = True
    default_in_history: bool = False
    self_summary: bool = False
    bookkeeping: bool = True
    rl_details: bool = False
    statistics: bool = False
    cases: bool = False
    difficulty: bool = False
    shuffled: bool = False


_V4 = Modules(bookkeeping=False)
PRESETS = {
    "v1": Modules(guideline=False, history=False, bookkeeping=False),
    "v2": Modules(history=False, bookkeeping=False),
    "v3": Modules(default_in_history=True, bookkeeping=False),
    "v4": _V4,
    "v5": msgspec.structs.replace(_V4, self_summary=True),
    "v6": Modules(),
    "rl_details": msgspec.structs.replace(_V4, rl_details=True),
    "shuffled": Modules(shuffled=True),
    "none": Modules(failures=False, guideline=False, history=False, bookkeeping=False),
    "difficulty": Modules(difficulty=True),
    "forecast": Modules(failures=False, guideline=False, history=False, bookkeeping=False, difficulty=True),
}
PAPER_PRESETS = ("v1", "v2", "v3", "v4", "v5", "v6", "rl_details")


class EvidenceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an engineer is shown."""

    preset: Annotated[str, one_of(PRESETS)] = "v6"
    """The context modules shown to the engineer, by preset; v1 to v6 are those of the paper."""
    modules: dict[str, bool] = {}
    """Single modules switched on or off against the preset, such as { cases = true }."""
    budget: Count = 6000
    """Most tokens of the evidence; beyond it parts are cut."""

    def __post_init__(self) -> None:
        self.chosen()

    def chosen(self) -> Modules:
        """The modules. Raises InputError on an unknown preset or module, naming the choices."""
        if self.preset not in PRESETS:
            raise InputError(f"preset is {self.preset!r:.60}; choose from {', '.join(PRESETS)}")
        names = Modules.__struct_fields__
        if unknown := [name for name in self.modules if name not in names]:
            raise InputError(f"modules: {unknown[0]!r:.60} is unknown; choose from {', '.join(names)}")
        return msgspec.structs.replace(PRESETS[self.preset], **self.modules)
