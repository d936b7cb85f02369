from .closed_loop import run as run
from .records.run_folder import RunFolder as RunFolder
from .redesign.story import describe_stage as describe_stage
from .settings.run_settings import load_settings as load_settings
