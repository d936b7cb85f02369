"""The choice of the agents' next moves, one agent after another, given where all agents are.

Agents exchange messages in several rounds; a message depends on both agents, their offset, and what the sender's map
says about the receiver's cell. Then each agent chooses, knowing the moves that earlier agents chose in the same step.
Moves that collide with these, or bring all agents back to an earlier joint state, may be excluded.
"""

import torch
from torch import nn

from lakewright.core_jax.types import DELTAS, MOVES, WAIT
from lakewright.policy.codecs.tokens import ID
from lakewright.policy.networks.prompt_parsing import Boards

REACH = 4  # rows or columns between two agents, beyond which they count as this far
END = len(MOVES)  # the choice that ends the answer, after those of moves
LOW = -1e4  # logit of what cannot be chosen


class JointStep(nn.Module):
    """The choices of the agents of S joint states.

    Args:
        width: width of an agent's state.
        layers: rounds of messages before the first agent chooses.
        keeps_rules: exclude moves that collide with an agent that chose earlier, unless no other move is left.
        never_repeats: exclude moves of the last agent that repeat an earlier joint state, unless no other is left.
    """

    def __init__(self, width: int, layers: int, *, keeps_rules: bool, never_repeats: bool) -> None:
        super().__init__()
        self.keeps_rules, self.never_repeats = keeps_rules, never_repeats
        self.last_embed = nn.Embedding(len(MOVES), width)
        self.chosen_embed = nn.Embedding(len(MOVES), width)
        self.offset_embed = nn.Embedding((2 * REACH + 1) ** 2, width)
        self.home_embed = nn.Embedding(2, width)
        self.rounds = nn.ModuleList(_Messages(width) for _ in range(layers))
        self.blocked = nn.Linear(3 * len(MOVES), width, bias=False)
        self.answer = _Messages(width)
        self.choose = nn.Linear(width + 3 * len(MOVES) + 1, width)
        self.head = nn.Linear(width, len(MOVES) + 1)

    def exchange_messages(
        self, boards: Boards, maps: torch.Tensor, which: torch.Tensor, cells: torch.Tensor, before: torch.Tensor
    ) -> torch.Tensor:
        """Return the state of each agent before any has chosen: [S, K, hidden].

        Args:
            boards: one for each state.
            maps: [D, K, n * n, hidden], the maps of the distinct boards.
            which: int [S], the index of each state's map.
            cells: int [S, K], where agents are.
            before: int [S, K], where they were a step ago.
        """
        agents = torch.arange(cells.shape[1], device=cells.device)
        seen = maps[which[:, None, None], agents, cells[:, :, None]]  # [S, receiver, sender, hidden]
        own = seen.diagonal(dim1=1, dim2=2).mT
        home = (cells == boards.goals).long()
        known = own + self.last_embed(_find_moves(before, cells, boards.side)) + self.home_embed(home)
        offsets = seen + self.offset_embed(_number_offsets(cells, boards.side))
        heard = boards.there[:, None] & (agents[:, None] != agents)
        for messages in self.rounds:
            known = messages(known, known[:, None], offsets, heard)
        return known

    def score_moves(
        self,
        boards: Boards,
        known: torch.Tensor,
        cells: torch.Tensor,
        following: torch.Tensor,
        past: torch.Tensor,
        state: torch.Tensor,
        agent: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits of the moves and the end, for one agent of each state, and the words for them: [Q, 6] each.

        Args:
            boards: one for each state.
            known: [S, K, hidden], from `exchange_messages`.
            cells: int [S, K], where agents are.
            following: int [S, K], where they are a step later; read only for agents that chose earlier.
            past: int [S, T, K], all joint states so far.
            state: int [Q], the joint state of each choice.
            agent: int [Q], the agent that chooses.
        """
        there, at, then = boards.there[state], cells[state], following[state]
        own_cell = at.gather(1, agent[:, None])
        targets, legal = _find_targets(own_cell, boards.free[state], boards.side)
        numbers = torch.arange(cells.shape[1], device=cells.device)
        # Agents choose in the order of their numbers, so those before this one are a step ahead.
        decided = there & (numbers < agent[:, None])
        others = there & (numbers != agent[:, None])
        marks = _mark_conflicts(targets, own_cell, at, then, decided, others)
        moved = torch.where(decided, _find_moves(at, then, boards.side), WAIT)
        said = self.chosen_embed(moved) * decided[..., None] + self.blocked(marks)
        own = known[state, agent]
        informed = self.answer(own, known[state], said, others)
        all_home = ((at == boards.goals[state]) | ~there).all(1, keepdim=True)
        logits = self.head(self.choose(torch.cat([informed, marks.amax(1), all_home.float()], 1)).relu())
        if self.keeps_rules:
            # The first ten marks break a rule, the last five only may: an agent that has not chosen can still leave.
            broken = marks[..., : 2 * len(MOVES)].amax(1).bool().unflatten(1, (2, -1)).any(1)
            legal = _exclude_moves(legal, broken)
        if self.never_repeats:
            # Only the last agent of a step can tell that the whole joint state would come again.
            last = agent + 1 == there.sum(1)
            legal = _exclude_moves(legal, _find_repeats(targets, past, then, state, agent, last))
        possible = torch.cat([legal, agent[:, None] == 0], 1)  # an answer ends only after whole steps
        words = torch.cat([boards.words_of(targets), torch.full_like(own_cell, ID["<eos>"])], 1)
        return logits.masked_fill(~possible, LOW), words


class _Messages(nn.Module):
    """One round, which adds the mean and the maximum of the others' messages to each agent's state."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.receive = nn.Linear(width, width)
        self.send = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(3 * width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(
        self, own: torch.Tensor, others: torch.Tensor, between: torch.Tensor, heard: torch.Tensor
    ) -> torch.Tensor:
        """Return the state of each agent after the round, [..., H].

        Args:
            own: [..., H], the receiver's state.
            others: [..., K, H], the senders' states.
            between: [..., K, H], an embedding of each pair.
            heard: bool [..., K], which senders are heard.
        """
        own_normed = self.norm(own)
        messages = self.receive(own_normed)[..., None, :] + self.send(self.norm(others))
        messages = messages.add_(between).relu_() * heard[..., None]  # in place: these are the largest tensors of all
        mean = messages.sum(-2) / heard.sum(-1, keepdim=True).clamp(min=1)
        return own + self.down(self.up(torch.cat([own_normed, mean, messages.amax(-2)], -1)).relu())


def _mark_conflicts(
    targets: torch.Tensor,
    own_cell: torch.Tensor,
    at: torch.Tensor,
    then: torch.Tensor,
    decided: torch.Tensor,
    others: torch.Tensor,
) -> torch.Tensor:
    """Return the conflicts of each move with each other agent, float [Q, K, 15].

    Each of the 5 moves may meet an agent that has chosen, exchange cells with it, or lead to the cell of an agent that
    has not chosen.

    Args:
        targets: int [Q, 5], the cells that moves lead to.
        own_cell: int [Q, 1].
        at: int [Q, K], where agents are.
        then: int [Q, K], where they are a step later.
        decided: bool [Q, K], the agents that have chosen.
        others: bool [Q, K], all agents except the one that chooses.
    """
    target = targets[:, None]  # [Q, 1, 5]
    meets = (target == then[..., None]) & decided[..., None]
    on_cell = target == at[..., None]
    swaps = on_cell & (decided & (then == own_cell))[..., None]
    occupied = on_cell & (others & ~decided)[..., None]
    return torch.cat([meets, swaps, occupied], -1).float()


def _find_repeats(
    targets: torch.Tensor,
    past: torch.Tensor,
    then: torch.Tensor,
    state: torch.Tensor,
    agent: torch.Tensor,
    last: torch.Tensor,
) -> torch.Tensor:
    """Return the moves of the last agent in a step that lead back to an earlier joint state, bool [Q, 5].

    Args:
        targets: int [Q, 5], the cells that moves lead to.
        past: int [S, T, K], all joint states so far.
        then: int [Q, K], where agents are a step later.
        state: int [Q], the joint state of each choice.
        agent: int [Q], the agent that chooses.
        last: bool [Q], True if it is the last agent of its step.
    """
    rows = last.nonzero().squeeze(1)
    earlier, own = past[state[rows]], agent[rows, None, None]  # [R, T, K]
    # A move repeats a joint state if it leads to the same cell (`same`) and all other agents, which have chosen, are
    # where they were (`alike`).
    alike = (earlier == then[rows, None]).scatter(2, own.expand(*earlier.shape[:2], 1), True).all(2)
    same = earlier.gather(2, own.expand(*earlier.shape[:2], 1)) == targets[rows, None]  # [R, T, 5]
    return torch.zeros_like(targets, dtype=torch.bool).index_copy(0, rows, (same & alike[..., None]).any(1))


def _exclude_moves(legal: torch.Tensor, excluded: torch.Tensor) -> torch.Tensor:
    """Return the legal moves [Q, 5] that are not excluded, or all legal moves if that leaves nothing."""
    left = legal & ~excluded
    return torch.where(left.any(1, keepdim=True), left, legal)


def _find_targets(cells: torch.Tensor, free: torch.Tensor, side: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cells that moves from `cells`, int [Q, 1], lead to, -1 off the grid, and which of them are free: [Q,
    5] each.
    """
    down, right = torch.tensor(DELTAS, device=cells.device).T
    rows, columns = cells // side + down, cells % side + right
    inside = (rows >= 0) & (rows < side) & (columns >= 0) & (columns < side)
    targets = torch.where(inside, rows * side + columns, -1)
    return targets, inside & free.gather(1, targets.clamp(min=0))


def _find_moves(cells: torch.Tensor, later: torch.Tensor, side: int) -> torch.Tensor:
    """Return the moves that lead from cells to the cells one step later; any other change counts as a wait."""
    change = torch.stack([later // side - cells // side, later % side - cells % side], -1)
    matches = (change[..., None, :] == torch.tensor(DELTAS, device=cells.device)).all(-1)
    return torch.where(matches.any(-1), matches.int().argmax(-1), WAIT)


def _number_offsets(cells: torch.Tensor, side: int) -> torch.Tensor:
    """Return the number of the offset from each agent to each other agent, int [S, K, K]."""
    parts = (cells // side, cells % side)
    rows, columns = ((part[:, None] - part[:, :, None]).clamp(-REACH, REACH) + REACH for part in parts)
    return rows * (2 * REACH + 1) + columns
