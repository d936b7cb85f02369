from .agent_pairs import pairs_of as pairs_of
from .solved import BUDGET as BUDGET
from .solved import Solved as Solved
from .solved import Stage as Stage
from .team_solver import compiling as compiling
from .team_solver import solve_teams as solve_teams
