from .drawing import BoardStream as BoardStream
from .tasks import TextTask as TextTask
from .tasks import score as score
