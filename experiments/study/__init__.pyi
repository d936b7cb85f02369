from .curves import curves_svg as curves_svg
from .plot import study_svg as study_svg
from .results import Results as Results
from .results_table import as_table as as_table
from .runner import run_study as run_study
from .runner import sum_up as sum_up
from .trial_checks import check_trials as check_trials
from .trial_checks import reliability_table as reliability_table
