"""The shape of a board network, as its checkpoints keep it in config.json."""

from typing import Any

from transformers import AutoConfig, PretrainedConfig

from lakewright.policy.networks.settings import BOARD_NETWORK


class BoardConfig(PretrainedConfig):
    """Widths and depths of a `BoardNetwork`.

    channels, iterations: of the map of each agent. hidden, layers: of what each agent knows at a step. cost_to_go:
    whether the maps begin with the distances of all cells from the agent's goal. keeps_rules: whether an agent never
    collides with one that has chosen before it in the same step, as long as it has another move. never_repeats: whether
    the last one never brings all agents back to where they were together, as long as it has another move.
    """

    model_type = BOARD_NETWORK

    def __init__(
        self,
        vocab_size: int = 115,
        channels: int = 32,
        iterations: int = 4,
        hidden: int = 96,
        layers: int = 3,
        cost_to_go: bool = True,
        keeps_rules: bool = True,
        never_repeats: bool = True,
        **given: Any,
    ) -> None:
        self.vocab_size, self.channels, self.iterations = vocab_size, channels, iterations
        self.hidden, self.layers = hidden, layers
        self.cost_to_go, self.keeps_rules, self.never_repeats = cost_to_go, keeps_rules, never_repeats
        fixed = {"tie_word_embeddings": False, "use_cache": False}  # there are no keys and values to keep
        super().__init__(**{**fixed, **given})


AutoConfig.register(BoardConfig.model_type, BoardConfig)
