from .board_features import COLUMNS as COLUMNS
from .board_features import features as features
from .board_features import table as table
from .device_draws import measure_draws as measure_draws
