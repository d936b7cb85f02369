from .label_campaign import Tried as Tried
from .label_campaign import measure as measure
from .label_campaign import table as table
