from .app import build_app as build_app
from .app import main as main
