from .drawing import BoardStream as BoardStream
from .tasks import TextTask as TextTask
from .tasks import board_key as board_key
from .tasks import score as score
