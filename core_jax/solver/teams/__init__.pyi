from .team import pairs_of as pairs_of
from .team import rows_of as rows_of
from .team_solver import BUDGET as BUDGET
from .team_solver import prepared as prepared
from .team_solver import solve_teams as solve_teams
from .team_solver import teams_at_once as teams_at_once
