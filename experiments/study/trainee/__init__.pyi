from .held_out import KINDS as KINDS
from .records import ARMS as ARMS
from .records import StudySettings as StudySettings
from .study import study_trainee as study_trainee
from .study import trainee_settings as trainee_settings
from .summary import trainee_table as trainee_table
