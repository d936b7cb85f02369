from .policies import dtype_of as dtype_of
from .policies import load_policy as load_policy
from .stage_boards import make_boards as make_boards
from .steps import held_out_set as held_out_set
from .steps import train as train
from .steps import validate as validate
from .steps import warm_up as warm_up
