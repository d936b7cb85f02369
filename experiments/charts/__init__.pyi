from .style import INK as INK
from .style import LOOK as LOOK
