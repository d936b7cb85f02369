"""Run by the Python of an environment with OpenEnv: asynchronous clients play the problems of a folder side by side.

python openenv_engineer_client.py FOLDER
"""

import asyncio
import sys

from openenv.core import GenericEnvClient
from openenv_engineer import report, serve

from lakewright.experiments.trainers.openenv import AsyncEngineerClient


async def play(url, index):
    async with GenericEnvClient(base_url=url) as connected:
        client = AsyncEngineerClient(connected, sys.argv[1], report, index=index, count=4, episodes=4)
        for _ in range(8):
            begun = await client.reset()
            await client.step({"text": str(sum(map(int, begun.observation["text"][:-1].split("+"))))})


async def play_all(url):
    await asyncio.gather(*(play(url, index) for index in range(4)))


url, server = serve()
asyncio.run(play_all(url))
server.should_exit = True
print("all have played")
