"""A causal model of the tokens codec that computes on the board instead of on words.

It reads the same words as the other models and gives logits for the same vocabulary, but of an answer it only chooses
among the free neighbours of an agent's cell and, after whole steps, the end; every other word has a logit of LOW.
"""

from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from lakewright.policy.networks.agent_maps import AgentMaps
from lakewright.policy.networks.board_config import BoardConfig
from lakewright.policy.networks.joint_step import LOW, JointStep
from lakewright.policy.networks.prompt_parsing import Boards, parse_answers, parse_boards


class BoardNetwork(PreTrainedModel, GenerationMixin):
    """Maps of the agents, made once for a prompt, and the choices of every step."""

    config_class = BoardConfig
    base_model_prefix = "network"
    main_input_name = "input_ids"

    def __init__(self, config: BoardConfig) -> None:
        super().__init__(config)
        self.maps = AgentMaps(config)
        self.steps = JointStep(config)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> CausalLMOutput:
        """Logits [B, L, V] of the word after each place of an answer; LOW everywhere else.

        Args: input_ids, int [B, L], prompts with answers, padded on either side with `<pad>`, which no mask needs to
        tell. logits_to_keep: only the last places; 0 keeps all.
        """
        boards = parse_boards(input_ids)
        states = parse_answers(input_ids, boards)
        maps, which = self.maps_of(boards)
        boards = boards[states.board]
        known = self.steps.look(boards, maps, which[states.board], states.cells, states.before)
        state, agent = (boards.there & (states.place < input_ids.shape[1])).nonzero(as_tuple=True)
        logits, words = self.steps.decide(boards, known, states.cells, states.following, states.past, state, agent)
        batch, length = input_ids.shape
        spread = logits.new_full((batch * length, self.config.vocab_size), LOW)
        rows = states.board[state] * length + states.place[state, agent]
        spread = spread.index_put((rows[:, None], words), logits).view(batch, length, -1)
        return CausalLMOutput(logits=spread[:, -logits_to_keep:])

    def maps_of(self, boards: Boards) -> tuple[torch.Tensor, torch.Tensor]:
        """The maps of all different boards, [D, K, n * n, hidden], and which of them each board has, int [B]."""
        named = torch.cat([boards.free.long(), boards.starts, boards.goals, boards.there.long()], 1)
        _, which = torch.unique(named, dim=0, return_inverse=True)
        one_of_each = which.new_zeros(int(which.max()) + 1).scatter(0, which, torch.arange(len(which)).to(which))
        return self.maps(boards[one_of_each]), which

    def _init_weights(self, module: nn.Module) -> None:
        """Layers begin as torch makes them; tables small. A hook of transformers."""
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.1)


AutoModelForCausalLM.register(BoardConfig, BoardNetwork)
