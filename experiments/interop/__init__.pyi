from .mapf_formats import FORMATS as FORMATS
from .mapf_formats import convert as convert
