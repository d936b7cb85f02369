from .results import table as table
from .runner import run_study as run_study
from .trainee import study_trainee as study_trainee
from .trainee import trainee_settings as trainee_settings
from .trainee import trainee_table as trainee_table
