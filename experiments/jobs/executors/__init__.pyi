from .executor import Executor as Executor
from .executor import Serial as Serial
from .executor import Task as Task
from .executor import WorkerDiedError as WorkerDiedError
from .executor import as_finished as as_finished
from .executor import in_order as in_order
from .local_processes import Local as Local
from .ray_cluster import Ray as Ray
