from .free_cores import FreeCores as FreeCores
from .library_setup import keep_compiled_programs as keep_compiled_programs
from .library_setup import prepare_training as prepare_training
from .progress_bars import print_on_terminal as print_on_terminal
from .progress_bars import progress as progress
from .system_errors import is_of_the_disk as is_of_the_disk
from .system_errors import system_error as system_error
