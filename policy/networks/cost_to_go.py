"""Distances of all cells from goals, as maps for agents: the cost-to-go of single agents, other agents ignored.

Learned policies for many agents are commonly given them: DHC (Ma et al. 2021), MAPF-GPT (Andreychuk et al. 2024).
"""

import torch

UNREACHED = -1


def cost_to_go(free: torch.Tensor, goals: torch.Tensor) -> torch.Tensor:
    """Steps from each cell to a goal, int [..., n, n], UNREACHED where there is no way.

    Args: free, bool [..., n, n]. goals, bool [..., n, n], the one goal of each map.
    """
    reached = goals & free
    distance = torch.where(reached, 0, UNREACHED)
    step = 0
    while True:
        step += 1
        new = spread(reached) & free & ~reached
        if not new.any():
            return distance
        distance = torch.where(new, step, distance)
        reached = reached | new


def spread(cells: torch.Tensor) -> torch.Tensor:
    """The cells [..., n, n] beside those that are set."""
    up, down, left, right = neighbours(cells)
    return up | down | left | right


def neighbours(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """What the cells above, below, left and right of each cell hold, [..., n, n] each, 0 beyond the border."""
    wide = torch.nn.functional.pad(values, (1, 1, 1, 1))
    return wide[..., :-2, 1:-1], wide[..., 2:, 1:-1], wide[..., 1:-1, :-2], wide[..., 1:-1, 2:]
