from .base import Rollout as Rollout
from .base import Sampler as Sampler
from .registry import SAMPLERS as SAMPLERS
from .registry import SamplerSettings as SamplerSettings
from .registry import make_sampler as make_sampler
