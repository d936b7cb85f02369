from .board_config import BoardConfig as BoardConfig
from .board_decoder import BoardDecoder as BoardDecoder
from .board_network import BoardNetwork as BoardNetwork
from .settings import BOARD_NETWORK as BOARD_NETWORK
from .settings import BoardNetworkSettings as BoardNetworkSettings
