"""Settings of every test: JAX on the CPU, each key used once, no network, our own warnings are errors.

Compiling takes most of the time of these tests. Each program is compiled once for all processes of a run: workers,
commands and their children keep what they compile in one folder. It is a new one for each run, which begins with what
earlier runs that passed had compiled (`build/programs`), unless JAX_COMPILATION_CACHE_DIR names one. XLA is not to
spend time on fast code, which changes no result; `XLA_FLAGS= make test` tests the programs as users have them.
"""

import gc
import os

from tests.support.processes.kept_programs import begin_folder, keep_programs

os.environ["JAX_PLATFORMS"] = os.environ.get("TEST_PLATFORM", "cpu")  # cuda: see docs/lab/gpu-hosts-on-one-gpu.md
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
# Else a program's name in the folder would depend on the path of the folder, another one in each run.
os.environ["JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES"] = "none"
if "JAX_COMPILATION_CACHE_DIR" in os.environ:
    PROGRAMS = None
else:  # the first process of the run; the others inherit what it sets
    PROGRAMS = begin_folder()
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(PROGRAMS)

import hypothesis
import jax
import pytest

from tests.support.deep import count_examples
from tests.support.servers.chromium_path import chromium_path

gc.disable()  # until the tests begin: looking for garbage took half of the time of importing them

jax.config.update("jax_debug_key_reuse", True)

hypothesis.settings.register_profile("lakewright", deadline=None, max_examples=count_examples(50))
hypothesis.settings.load_profile("lakewright")


@pytest.fixture
def quick_endpoint(monkeypatch):
    """Clients of chat servers use no key of this machine, and pause briefly."""
    from lakewright.policy.inference import chat_reply, endpoint

    for name in endpoint.KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(endpoint, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(chat_reply, "LONGEST_WISH", 1.0)


def pytest_configure(config):
    for package in ("core_jax", "policy", "engineer", "experiments"):
        config.addinivalue_line("filterwarnings", f"error:::lakewright.{package}")
    config.addinivalue_line("markers", "browser: a journey through the viewer in a real Chromium")


def pytest_collection_modifyitems(config, items):
    """Without a browser the journeys cannot be made; `pytest_terminal_summary` says so."""
    journeys = [item for item in items if item.get_closest_marker("browser")]
    if journeys and not chromium_path():
        config.hook.pytest_deselected(items=journeys)
        items[:] = [item for item in items if item not in journeys]


def pytest_sessionfinish(exitstatus):
    if PROGRAMS and exitstatus == pytest.ExitCode.OK:
        keep_programs(PROGRAMS)


def pytest_terminal_summary(terminalreporter):
    if not chromium_path():
        terminalreporter.write_line("Left out: the viewer's journeys, which need a browser (apt-get install chromium)")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    gc.freeze()  # what is imported stays; the trainer collects garbage again and again, and need not look through that
    gc.set_threshold(20_000)
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def freeze_garbage():
    """Nor through what a file of tests leaves behind, such as compiled programs."""
    yield
    gc.collect()
    gc.freeze()
