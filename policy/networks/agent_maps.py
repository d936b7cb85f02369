"""A map for each agent: what every cell of the board means to it, found by a recurrent convolution.

One convolution of shared weights is applied again and again, as value iteration spreads values over a grid (Tamar et
al. 2016, arXiv 1602.02867), through a gate, with the input added in every iteration (Bansal et al. 2022, arXiv
2202.05826). Between two iterations the maps of a board's agents are averaged, so that each knows of the others.

A map may begin with the cost-to-go of its agent, the other agents ignored, as learned policies for many agents commonly
do: DHC (Ma et al. 2021), MAPF-GPT (Andreychuk et al. 2024).
"""

import torch
from torch import nn

from lakewright.policy.networks.prompt_parsing import Boards

ENDS = 5  # planes: free cells, own start and goal, starts and goals of the others
DISTANCES = 6  # planes: which neighbour is nearer to the goal, whether the goal can be reached, how far it is
DISTANCE_SCALE = 10.0  # the distance of which the plane is 1
UNREACHED = -1


class AgentMaps(nn.Module):
    """The maps of all agents of a batch of boards.

    Args:
        channels: for the state of each map.
        iterations: for the recurrent convolution.
        hidden: width of what a map says about a cell.
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
