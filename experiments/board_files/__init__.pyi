from .drawing import draw_file as draw_file
from .solving import solve_file as solve_file
from .verifying import verify_file as verify_file
from .watch import Watch as Watch
