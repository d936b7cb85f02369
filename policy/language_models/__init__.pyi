from .gguf_files import checkpoint_for as checkpoint_for
from .speech import check_speech as check_speech
