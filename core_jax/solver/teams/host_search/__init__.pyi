from .host_search import Searched as Searched
from .host_search import search as search
from .workspace import COSTS as COSTS
from .workspace import MAKESPAN as MAKESPAN
from .workspace import Numbers as Numbers
