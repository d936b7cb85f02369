"""Random play in POGEMA for some seconds: run by the Python of an environment with it, which lacks this package.

python pogema_play.py SIZE AGENTS STEPS SECONDS
"""

import json
import random
import sys
import time

import pogema


def main() -> None:
    """Prints the version and the joint moves a second, with resets and observations."""
    size, agents, steps, seconds = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    config = pogema.GridConfig(num_agents=agents, size=size, density=0.3, max_episode_steps=steps, seed=0)
    env, chance = pogema.pogema_v0(config), random.Random(0)
    env.reset()
    moves, begun = 0, time.perf_counter()
    while (passed := time.perf_counter() - begun) < seconds:
        _, _, terminated, truncated, _ = env.step([chance.randrange(5) for _ in range(agents)])
        moves += 1
        if all(terminated) or all(truncated):
            env.reset()
    print(json.dumps({"version": pogema.__version__, "rate": moves / passed}))


if __name__ == "__main__":
    main()
