"""A slow oracle of `core_jax.statistics.board_features` on graphs of networkx: it shares no code with the package."""

from itertools import combinations, pairwise

import networkx as nx

from tests.support.boards.search_oracle import STEPS


def lake(grid) -> nx.Graph:
    """The free cells, neighbours linked."""
    cells = [(r, c) for r, row in enumerate(grid) for c, letter in enumerate(row) if letter == "."]
    whole = nx.grid_2d_graph(len(grid), len(grid[0]))
    return nx.Graph(whole.subgraph(cells))


def terrain(grid) -> dict[str, float]:
    """The columns that are of the free cells alone."""
    graph = lake(grid)
    degrees = [degree for _, degree in graph.degree]
    sizes = [len(part) for part in nx.connected_components(graph)]
    return {
        "free_cells": len(graph),
        "components": len(sizes),
        "largest_component": max(sizes, default=0),
        "branching": sum(degrees) / max(len(graph), 1),
        "dead_ends": degrees.count(1),
        "corridors": sum(degree <= 2 for degree in degrees),
        "bottlenecks": sum(_is_bottleneck(graph, cell) for cell in graph),
    }


def ways(grid, starts, goals) -> dict[str, int] | None:
    """The columns that are of shortest paths; None where an agent has no way."""
    graph = lake(grid)
    if not all(nx.has_path(graph, *ends) for ends in zip(starts, goals, strict=True)):
        return None
    every = [list(nx.all_shortest_paths(graph, *ends)) for ends in zip(starts, goals, strict=True)]
    lengths = [len(paths[0]) - 1 for paths in every]
    first = [min(paths, key=_turns) for paths in every]
    times = range(max(lengths) + 1)
    at = [[path[min(time, len(path) - 1)] for time in times] for path in first]
    levels = [[{path[min(time, len(path) - 1)] for path in paths} for time in times] for paths in every]
    pairs = list(combinations(range(len(starts)), 2))
    vertex = [(a, b, time) for a, b in pairs for time in times if at[a][time] == at[b][time]]
    swaps = [
        (a, b, time)
        for a, b in pairs
        for time in times[1:]
        if at[a][time - 1] == at[b][time] != at[a][time] == at[b][time - 1]
    ]
    return {
        "makespan_bound": max(lengths),
        "cost_bound": sum(lengths),
        "vertex_conflicts": len(vertex),
        "target_conflicts": sum(at[a][time] in (goals[a], goals[b]) for a, b, time in vertex),
        "swap_conflicts": len(swaps),
        "cardinal_conflicts": sum(len(levels[a][time] | levels[b][time]) == 1 for a, b in pairs for time in times),
        "path_overlap": len({cell for a, b in pairs for cell in {*first[a]} & {*first[b]}}),
        "mdd_nodes": sum(len({cell for path in paths for cell in path}) for paths in every),
        "mdd_overlap": len({cell for a, b in pairs for time in times for cell in levels[a][time] & levels[b][time]}),
    }


def _is_bottleneck(graph: nx.Graph, cell: tuple) -> bool:
    around = [(cell[0] + down, cell[1] + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    groups = nx.connected_components(graph.subgraph(set(around) - {cell}))
    return sum(any(beside in group for beside in graph[cell]) for group in groups) > 1


def _turns(path: list[tuple]) -> list[int]:
    """The moves of a path, U before D before L before R."""
    steps = [(r - before_r, c - before_c) for (before_r, before_c), (r, c) in pairwise(path)]
    return [[*STEPS.values()].index(step) for step in steps]
