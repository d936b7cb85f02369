"""How the difficulty model is fitted."""

import msgspec

from core_jax.support import Share


class DifficultySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the model of P(valid) is fitted."""

    decay: Share = 0.6
    """The factor by which the weight of a group falls with every stage since it was rolled out, 0 to 1."""
