from .endurance import Look as Look
from .endurance import Watched as Watched
from .endurance import endurance_table as endurance_table
from .endurance import endure as endure
from .endurance import watch as watch
from .label_campaign import Total as Total
from .label_campaign import measure as measure
from .label_campaign import table as table
