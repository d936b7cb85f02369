from .accelerator.device_solver import solve_on_device as solve_on_device
from .memory import check_memory as check_memory
from .memory import memory_needed as memory_needed
from .solver import flood_boards as flood_boards
from .solver import solve as solve
from .solver import solve_by_flood as solve_by_flood
from .solver import solve_with_stages as solve_with_stages
from .teams.team_solver import SolverStage as SolverStage
