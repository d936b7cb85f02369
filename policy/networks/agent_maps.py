"""A map for each agent: what every cell of the board means to it, found by a recurrent convolution.

One convolution of shared weights is applied again and again, as value iteration spreads values over a grid (Tamar et
al. 2016, arXiv 1602.02867), through a gate, with the input given anew each time (Bansal et al. 2022, arXiv 2202.05826).
Between two iterations the maps of a board's agents are averaged, so that each knows of the others.
"""

import torch
from torch import nn

from lakewright.policy.networks.board_config import BoardConfig
from lakewright.policy.networks.cost_to_go import UNREACHED, cost_to_go, neighbours
from lakewright.policy.networks.prompt_parsing import Boards

ENDS = 5  # planes: free cells, own start and goal, those of the others
DISTANCES = 6  # planes: which neighbour is nearer to the goal, whether the goal can be reached, how far it is
DISTANCE_SCALE = 10.0  # the distance of which the plane is 1


class AgentMaps(nn.Module):
    """The maps of all agents of a batch of boards."""

    def __init__(self, config: BoardConfig) -> None:
        super().__init__()
        self.with_distances, self.iterations = config.cost_to_go, config.iterations
        planes = ENDS + DISTANCES * config.cost_to_go
        self.read = nn.Conv2d(planes, 2 * config.channels, 3, padding=1)
        self.update = nn.Conv2d(config.channels, 2 * config.channels, 3, padding=1, bias=False)
        self.exchange = nn.Conv2d(config.channels, config.channels, 1, bias=False)
        self.view = nn.Conv2d(config.channels + planes, config.hidden, 3, padding=1)

    def forward(self, boards: Boards) -> torch.Tensor:
        """What each cell and its surroundings mean to each agent: [B, K, n * n, hidden]."""
        count, agents = boards.there.shape
        planes = self._planes(boards)
        given = self.read(planes)
        free = planes[:, :1]
        there = boards.there.flatten()[:, None, None, None].float()
        others = (boards.there.sum(1, keepdim=True) - 1).clamp(min=1).float()[:, :, None, None, None]

        def of_others(state: torch.Tensor) -> torch.Tensor:
            state = (self.exchange(state) * there).unflatten(0, (count, agents))
            return ((state.sum(1, keepdim=True) - state) / others).flatten(0, 1)

        state = torch.zeros_like(given[:, : self.exchange.in_channels])
        for _ in range(self.iterations):
            gate, new = (self.update(state + of_others(state)) + given).chunk(2, 1)
            state = torch.lerp(state, new.tanh(), gate.sigmoid()) * free
        seen = self.view(torch.cat([state, planes], 1))
        return seen.flatten(2).mT.unflatten(0, (count, agents))

    def _planes(self, boards: Boards) -> torch.Tensor:
        """The input of each map: float [B * K, planes, n, n]."""
        side, (count, agents) = boards.side, boards.there.shape

        def marked(cells: torch.Tensor) -> torch.Tensor:
            marks = nn.functional.one_hot(cells, side * side) * boards.there[..., None]
            return marks.view(count, agents, side, side)

        starts, goals = marked(boards.starts), marked(boards.goals)
        free = boards.free.view(count, 1, side, side).expand_as(starts)
        others = [marks.sum(1, keepdim=True) - marks for marks in (starts, goals)]
        planes = [free, starts, goals, *others]
        if self.with_distances:
            planes += _distance_planes(cost_to_go(free, goals.bool()))
        stacked = torch.stack([plane.float() for plane in planes], 2).flatten(0, 1)
        return stacked.contiguous(memory_format=torch.channels_last)


def _distance_planes(distance: torch.Tensor) -> list[torch.Tensor]:
    reached = distance != UNREACHED
    ways = (distance + 1) * reached  # 0 where there is no way, as beyond the border
    nearer = [(beside > 0) & (beside + 1 == ways) for beside in neighbours(ways)]
    return [*nearer, reached, distance * reached / DISTANCE_SCALE]
