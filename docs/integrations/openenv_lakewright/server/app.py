"""The application, `openenv_lakewright.server.app:app`, and `server`, which serves it.

Its boards are those of `PoolOptions`; LAKEWRIGHT_OPTIONS changes them, as in `{"size": 6, "agents": 3}`.
"""

import argparse
import functools
import os

import msgspec
import uvicorn
from openenv.core.env_server.http_server import create_app

from lakewright.core_jax.errors import InputError
from lakewright.experiments.boards.episodes.pools import board_pool
from openenv_lakewright.models import LakeAction, LakeObservation, LakeState
from openenv_lakewright.server.lake_environment import LakeEnvironment

CLIENTS = 16  # at the same time
OPTIONS = "LAKEWRIGHT_OPTIONS"


def _options() -> dict[str, object]:
    try:
        return msgspec.json.decode(os.environ.get(OPTIONS, "{}"), type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise InputError(f"{OPTIONS}: {error}; give a JSON object of options") from error


app = create_app(
    functools.partial(LakeEnvironment, board_pool(**_options())),
    LakeAction,
    LakeObservation,
    env_name="lakewright",
    max_concurrent_envs=CLIENTS,
    state_cls=LakeState,
)


def main() -> None:
    """Serves the application."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    uvicorn.run(app, host=given.host, port=given.port)


if __name__ == "__main__":
    main()
