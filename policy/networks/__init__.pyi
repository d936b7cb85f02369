from .board_config import BoardConfig as BoardConfig
from .board_decoder import BoardDecoder as BoardDecoder
from .board_network import BoardNetwork as BoardNetwork
