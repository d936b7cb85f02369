from .export import Exported as Exported
from .export import export_benchmark as export_benchmark
