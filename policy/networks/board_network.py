"""A causal model of the tokens codec that computes on the board: its config, its weights, its decoder.

It reads the same words as the other models and gives logits for the same vocabulary. In an answer it chooses only among
the free neighbours of an agent's cell and, after whole steps, the end. Every other word has a logit of LOW.

Each agent has a map, computed by a recurrent convolution: what every cell of the board means to that agent.

One convolution of shared weights is applied again and again, as value iteration spreads values over a grid (Tamar et
al. 2016, arXiv 1602.02867), through a gate, with the input added in every iteration (Bansal et al. 2022, arXiv
2202.05826). Between two iterations the maps of a board's agents are averaged, so that each agent learns of the others.

A map may begin with its agent's cost-to-go, which ignores the other agents. This is common in learned policies for many
agents: DHC (Ma et al. 2021), MAPF-GPT (Andreychuk et al. 2024).
"""

from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from lakewright.policy.model_settings import BOARD_NETWORK
from lakewright.policy.networks.joint_step import LOW, JointStep
from lakewright.policy.networks.prompt_parsing import NOWHERE, Boards, parse_answers, parse_boards

MOST_UNFINISHED = 0.75  # finished boards are dropped once at most this share is unfinished
ENDS = 5  # planes: free cells, own start and goal, starts and goals of the others
DISTANCES = 6  # planes: which neighbour is nearer to the goal, whether the goal can be reached, how far it is
DISTANCE_SCALE = 10.0  # the distance of which the plane is 1
UNREACHED = -1


class BoardConfig(PretrainedConfig):
    """Widths and depths of a `BoardNetwork`, as its checkpoints store them in config.json.

    Args:
        vocab_size: tokens of the codec and any extra words.
        channels, iterations: size of the map of each agent.
        hidden, layers: size of the network that chooses moves at a step.
        cost_to_go: begin the maps with the distances of all cells from the agent's goal.
        keeps_rules: let no agent collide with one that has chosen before it in the same step, unless no other move is
            left.
        never_repeats: let the last agent never repeat an earlier joint state, unless no other move is left.
        given: other fields of a config of transformers.
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
        fixed = {"tie_word_embeddings": False, "use_cache": False}  # a board network has no cache of keys and values
        super().__init__(**{**fixed, **given})


class BoardNetwork(PreTrainedModel, GenerationMixin):
    """The maps of the agents, computed once for a prompt, and the choices of every step."""

    config_class = BoardConfig
    base_model_prefix = "network"
    main_input_name = "input_ids"

    def __init__(self, config: BoardConfig) -> None:
        super().__init__(config)
        self.maps = AgentMaps(config.channels, config.iterations, config.hidden, cost_to_go=config.cost_to_go)
        self.steps = JointStep(
            config.hidden, config.layers, keeps_rules=config.keeps_rules, never_repeats=config.never_repeats
        )
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> CausalLMOutput:
        """Return the logits [B, L, V] of the word after each place of an answer; LOW everywhere else.

        Args:
            input_ids: int [B, L], prompts with answers, padded with `<pad>` on either side.
            attention_mask: ignored, because padding is read from the ids.
            logits_to_keep: how many of the last places to return; 0 means all.
            _: other arguments of transformers, ignored.
        """
        boards = parse_boards(input_ids)
        states = parse_answers(input_ids, boards)
        maps, which = self.make_maps(boards)
        boards = boards[states.board]
        known = self.steps.exchange_messages(boards, maps, which[states.board], states.cells, states.before)
        state, agent = (boards.there & (states.place < input_ids.shape[1])).nonzero(as_tuple=True)
        logits, words = self.steps.score_moves(boards, known, states.cells, states.following, states.past, state, agent)
        batch, length = input_ids.shape
        spread = logits.new_full((batch * length, self.config.vocab_size), LOW)
        rows = states.board[state] * length + states.place[state, agent]
        spread = spread.index_put((rows[:, None], words), logits).view(batch, length, -1)
        return CausalLMOutput(logits=spread[:, -logits_to_keep:])

    def make_maps(self, boards: Boards) -> tuple[torch.Tensor, torch.Tensor]:
        """Return maps of the D distinct boards, [D, K, n * n, hidden], and the number of each board's map, int [B]."""
        named = torch.cat([boards.free.long(), boards.starts, boards.goals, boards.there.long()], 1)
        _, which = torch.unique(named, dim=0, return_inverse=True)
        one_of_each = which.new_zeros(int(which.max()) + 1).scatter(0, which, torch.arange(len(which)).to(which))
        return self.maps(boards[one_of_each]), which

    def _init_weights(self, module: nn.Module) -> None:
        """Keep the initial weights of torch, except for small embedding tables. A hook of transformers."""
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.1)


AutoConfig.register(BoardConfig.model_type, BoardConfig)
AutoModelForCausalLM.register(BoardConfig, BoardNetwork)


class BoardDecoder:
    """The state of B boards with G answers each: the cells of all agents, and the agent that moves next."""

    def __init__(self, model: Any, copies: int, length: int) -> None:
        self._model, self._copies = model, copies  # the length is not needed: nothing is allocated for it

    # The state, which `read_prompts` begins: maps of boards; and for each answer its board, the cells of its agents
    # now, one step earlier, one step later as far as chosen, and in all steps so far; and the agent that moves next.
    _maps: torch.Tensor
    _boards: Boards
    _which: torch.Tensor
    _cells: torch.Tensor
    _before: torch.Tensor
    _following: torch.Tensor
    _past: torch.Tensor
    _turn: torch.Tensor
    _known: torch.Tensor

    def read_prompts(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Read prompts int [B, P]: the logits of the first word of answers, [B, G, V]. mask: not needed."""
        boards = parse_boards(ids)
        self._maps, which = self._model.make_maps(boards)
        answers = torch.arange(len(ids), device=ids.device).repeat_interleave(self._copies)
        self._boards, self._which = boards[answers], which[answers]
        self._cells = self._before = self._boards.starts
        self._following = self._cells.clone()
        self._past = self._cells[:, None]
        self._turn = torch.zeros_like(answers)
        self._known = self._model.steps.exchange_messages(boards, self._maps, which, boards.starts, boards.starts)[
            answers
        ]
        return self._compute_logits()

    def add_tokens(self, tokens: torch.Tensor) -> torch.Tensor:
        """Add one word to every answer, int [B, G]: the logits of the next, [B, G, V]."""
        rows = torch.arange(len(self._turn), device=tokens.device)
        self._following[rows, self._turn] = self._boards.cells_of(tokens.flatten())
        self._turn = self._turn + 1
        # Joint states are computed once all agents of an answer have moved; until then only the next agent chooses.
        over = (self._turn == self._boards.there.sum(1)).nonzero().squeeze(1)
        if len(over):
            self._begin_next_step(over)
        return self._compute_logits()

    def select_boards(self, boards: torch.Tensor) -> None:
        """Continue with some boards only, int [B']."""
        rows = (boards[:, None] * self._copies + torch.arange(self._copies, device=boards.device)).flatten()
        self._boards, self._which, self._turn = self._boards[rows], self._which[rows], self._turn[rows]
        self._cells, self._before, self._past = self._cells[rows], self._before[rows], self._past[rows]
        self._following, self._known = self._following[rows], self._known[rows]

    def should_drop_finished(self, share: float, left: int) -> bool:
        """Return True if few boards are unfinished: at most `share` of those that are held."""
        return share <= MOST_UNFINISHED

    def _begin_next_step(self, rows: torch.Tensor) -> None:
        """Begin the next step of answers whose agents have all moved."""
        before, cells, boards = self._cells[rows], self._following[rows], self._boards[rows]
        self._turn = self._turn.index_fill(0, rows, 0)
        self._before = self._before.index_copy(0, rows, before)
        self._cells = self._cells.index_copy(0, rows, cells)
        arrived = torch.full_like(self._cells, NOWHERE).index_copy(0, rows, cells)
        self._past = torch.cat([self._past, arrived[:, None]], 1)
        known = self._model.steps.exchange_messages(boards, self._maps, self._which[rows], cells, before)
        self._known = self._known.index_copy(0, rows, known)

    def _compute_logits(self) -> torch.Tensor:
        boards: Boards = self._boards
        rows = torch.arange(len(self._turn), device=self._turn.device)
        logits, words = self._model.steps.score_moves(
            boards, self._known, self._cells, self._following, self._past, rows, self._turn
        )
        spread = logits.new_full((len(rows), self._model.config.vocab_size), LOW).scatter(1, words, logits)
        return spread.unflatten(0, (-1, self._copies))


class AgentMaps(nn.Module):
    """The maps of all agents of a batch of boards.

    Args:
        channels: channels of a map's state.
        iterations: steps of the recurrent convolution.
        hidden: width of a map's output for a cell.
        cost_to_go: whether the maps begin with the distances of all cells from the agent's goal.
    """

    def __init__(self, channels: int, iterations: int, hidden: int, *, cost_to_go: bool) -> None:
        super().__init__()
        self.with_distances, self.iterations = cost_to_go, iterations
        planes = ENDS + DISTANCES * cost_to_go
        self.read = nn.Conv2d(planes, 2 * channels, 3, padding=1)
        self.update = nn.Conv2d(channels, 2 * channels, 3, padding=1, bias=False)
        self.exchange = nn.Conv2d(channels, channels, 1, bias=False)
        self.view = nn.Conv2d(channels + planes, hidden, 3, padding=1)

    def forward(self, boards: Boards) -> torch.Tensor:
        """Return what each cell and its surroundings mean to each agent: [B, K, n * n, hidden]."""
        count, agents = boards.there.shape
        planes = self._stack_planes(boards)
        given = self.read(planes)
        free = planes[:, :1]
        there = boards.there.flatten()[:, None, None, None].float()
        others = (boards.there.sum(1, keepdim=True) - 1).clamp(min=1).float()[:, :, None, None, None]

        def average_others(state: torch.Tensor) -> torch.Tensor:
            # The mean over all agents but one is the sum of all without its own part, so no pairs are formed.
            state = (self.exchange(state) * there).unflatten(0, (count, agents))
            return ((state.sum(1, keepdim=True) - state) / others).flatten(0, 1)

        state = torch.zeros_like(given[:, : self.exchange.in_channels])
        for _ in range(self.iterations):
            gate, new = (self.update(state + average_others(state)) + given).chunk(2, 1)
            # Holes stay 0, so that nothing spreads through them.
            state = torch.lerp(state, new.tanh(), gate.sigmoid()) * free
        seen = self.view(torch.cat([state, planes], 1))
        return seen.flatten(2).mT.unflatten(0, (count, agents))

    def _stack_planes(self, boards: Boards) -> torch.Tensor:
        """Return the input of each map: float [B * K, planes, n, n]."""
        side, (count, agents) = boards.side, boards.there.shape

        def mark_cells(cells: torch.Tensor) -> torch.Tensor:
            marks = nn.functional.one_hot(cells, side * side) * boards.there[..., None]
            return marks.view(count, agents, side, side)

        starts, goals = mark_cells(boards.starts), mark_cells(boards.goals)
        free = boards.free.view(count, 1, side, side).expand_as(starts)
        others = [marks.sum(1, keepdim=True) - marks for marks in (starts, goals)]
        planes = [free, starts, goals, *others]
        if self.with_distances:
            planes += _build_distance_planes(cost_to_go(free, goals.bool()))
        stacked = torch.stack([plane.float() for plane in planes], 2).flatten(0, 1)
        return stacked.contiguous(memory_format=torch.channels_last)


def _build_distance_planes(distance: torch.Tensor) -> list[torch.Tensor]:
    reached = distance != UNREACHED
    ways = (distance + 1) * reached  # 0 for unreachable cells, as beyond the border
    nearer = [(beside > 0) & (beside + 1 == ways) for beside in shift_values(ways)]
    return [*nearer, reached, distance * reached / DISTANCE_SCALE]


def cost_to_go(free: torch.Tensor, goals: torch.Tensor) -> torch.Tensor:
    """Return the steps from each cell to a goal, int [..., n, n], UNREACHED for cells without a path.

    A breadth-first search on all maps at once: each round adds the free neighbours of the cells reached so far.

    Args:
        free: bool [..., n, n].
        goals: bool [..., n, n], the one goal of each map.
    """
    reached = goals & free
    distance = torch.where(reached, 0, UNREACHED)
    step = 0
    while True:
        step += 1
        new = spread_cells(reached) & free & ~reached
        if not new.any():
            return distance
        distance = torch.where(new, step, distance)
        reached = reached | new


def spread_cells(cells: torch.Tensor) -> torch.Tensor:
    """Return the cells [..., n, n] next to those that are set."""
    up, down, left, right = shift_values(cells)
    return up | down | left | right


def shift_values(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the values above, below, left and right of each cell, [..., n, n] each, 0 beyond the border."""
    wide = torch.nn.functional.pad(values, (1, 1, 1, 1))
    return wide[..., :-2, 1:-1], wide[..., 2:, 1:-1], wide[..., 1:-1, :-2], wide[..., 1:-1, 2:]
