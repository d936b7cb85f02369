from .routing import application as application
from .serving import serve as serve
