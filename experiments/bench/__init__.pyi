from . import files as files
from . import sampling as sampling
from . import sweeps as sweeps
from . import updates as updates
from . import warmups as warmups
from .lake import measure as measure
from .measurement import markdown as markdown
from .measurement import table as table
