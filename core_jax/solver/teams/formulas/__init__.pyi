from .optimal_plans import UNLIMITED as UNLIMITED
from .optimal_plans import Answer as Answer
from .optimal_plans import Conflicts as Conflicts
from .optimal_plans import cheapest_plan as cheapest_plan
from .optimal_plans import fastest_plan as fastest_plan
from .puzzle import NO_PATH as NO_PATH
from .puzzle import Puzzle as Puzzle
from .puzzle import puzzle_of as puzzle_of
