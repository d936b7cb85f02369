"""Hypothesis strategies of boards and configs, for tests of generators, solvers and readers."""

from lakewright.core_jax.config import MAX_AGENTS, MAX_HOLE_RATIO, MAX_SIZE, MIN_SIZE, EnvConfig, SizeConfig, holds
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows.row import Row
from lakewright.core_jax.support.extras import naming_extra

with naming_extra(__name__, "testing"):
    from hypothesis import strategies as st
    from hypothesis.strategies import DrawFn, SearchStrategy

WHOLE = 1_000_000  # shares and ratios have six decimals


def boards(*, max_size: int = MAX_SIZE, max_agents: int = MAX_AGENTS) -> SearchStrategy[Row]:
    """Boards of any size from 1 with any holes, solvable or not, and without labels.

    max_size: the largest size, in cells. max_agents: the most agents; fewer if they do not fit.
    """
    return _boards(max_size, max_agents)


@st.composite
def _boards(draw: DrawFn, max_size: int, max_agents: int) -> Row:
    size = draw(st.integers(1, max_size))
    agents = draw(st.integers(1, min(max_agents, size * size)))
    cells = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
    starts, goals = (draw(st.lists(cells, min_size=agents, max_size=agents, unique=True)) for _ in range(2))
    holes = set(draw(st.lists(cells, max_size=size * size // 2))) - {*starts, *goals}
    grid = ["".join("H" if (line, column) in holes else "." for column in range(size)) for line in range(size)]
    return Row("board", size, agents, grid, starts, goals)


def configs(
    *, min_size: int = MIN_SIZE, max_size: int = MAX_SIZE, agents: int | None = None
) -> SearchStrategy[EnvConfig]:
    """Legal configs, whose boards need not all exist. agents: their number; by default 1 to 8, as the sizes hold.

    min_size, max_size: the range of sizes, in cells.
    """
    return _configs(min_size, max_size, agents)


@st.composite
def _configs(draw: DrawFn, min_size: int, max_size: int, agents: int | None) -> EnvConfig:
    team = draw(st.integers(1, MAX_AGENTS)) if agents is None else agents
    fitting = [size for size in range(min_size, max_size + 1) if holds(size, team)]
    if not fitting:
        raise InputError(
            f"configs: {team} agents fit on no size from {min_size} to {max_size}; choose fewer, or larger sizes"
        )
    sizes = draw(st.lists(st.sampled_from(fitting), min_size=1, unique=True))
    weights = [draw(st.integers(1, 9)) for _ in sizes]
    ratios = st.integers(0, round(MAX_HOLE_RATIO * WHOLE)).map(lambda part: part / WHOLE)
    waits = st.integers(0, WHOLE).map(lambda part: part / WHOLE)
    rows = {
        size: SizeConfig(weight / sum(weights), draw(ratios), draw(waits))
        for size, weight in zip(sizes, weights, strict=True)
    }
    return EnvConfig(rows, team)
