from .answerers import Answerer as Answerer
from .answerers import EndpointAnswerer as EndpointAnswerer
from .answerers import ModelAnswerer as ModelAnswerer
from .answerers import PlannerAnswerer as PlannerAnswerer
from .evaluator import EvaluationSettings as EvaluationSettings
from .evaluator import evaluate as evaluate
from .plot import write_plots as write_plots
from .table import as_table as as_table
