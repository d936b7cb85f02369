from .agent_pairs import pairs_of as pairs_of
from .agent_pairs import rows_of as rows_of
from .host_search import compiling as compiling
from .team_solver import BUDGET as BUDGET
from .team_solver import Solved as Solved
from .team_solver import Stage as Stage
from .team_solver import solve_teams as solve_teams
