from .results_table import as_table as as_table
from .runner import run_study as run_study
from .runner import sum_up as sum_up
from .trainee import study_trainee as study_trainee
from .trainee import trainee_settings as trainee_settings
from .trainee import trainee_table as trainee_table
