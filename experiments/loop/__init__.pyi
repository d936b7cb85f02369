from .closed_loop import run as run
from .records.history import describe_stage as describe_stage
from .records.run_folder import RunFolder as RunFolder
from .settings.run_settings import load_settings as load_settings
