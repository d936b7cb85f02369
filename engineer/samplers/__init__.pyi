from .base import Fresh as Fresh
from .base import Rollout as Rollout
from .base import Sampled as Sampled
from .base import Sampler as Sampler
from .base import Score as Score
from .registry import SAMPLERS as SAMPLERS
from .registry import SamplerSettings as SamplerSettings
from .registry import make_sampler as make_sampler
