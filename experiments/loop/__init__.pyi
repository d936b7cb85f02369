from .closed_loop import prepare as prepare
from .closed_loop import run as run
from .machine_check import check_machine as check_machine
