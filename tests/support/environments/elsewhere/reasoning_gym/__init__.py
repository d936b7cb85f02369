"""What other processes of a test find as reasoning-gym: the same as `fake_reasoning_gym.install` makes in this one."""

import sys

from tests.support.environments.fake_reasoning_gym import make_modules

sys.modules.update(make_modules())
