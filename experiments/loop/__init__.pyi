from .closed_loop import prepare as prepare
from .closed_loop import run as run
from .dry_run import describe_plan as describe_plan
from .dry_run import describe_run as describe_run
from .machine_check import check_machine as check_machine
