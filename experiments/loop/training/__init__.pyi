from .held_out import held_out_set as held_out_set
from .policies import load_policy as load_policy
from .stage_boards import make_boards as make_boards
from .stage_training import train as train
from .validation import measure as measure
from .validation import validate as validate
from .warmup import warm_up as warm_up
