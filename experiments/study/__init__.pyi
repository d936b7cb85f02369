from .results import table as table
from .runner import run_study as run_study
