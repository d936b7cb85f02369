"""Settings of every test: JAX on the CPU, each key used once, no network, our own warnings are errors."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["HF_HUB_OFFLINE"] = "1"

import hypothesis
import jax

jax.config.update("jax_debug_key_reuse", True)

hypothesis.settings.register_profile("lakewright", deadline=None)
hypothesis.settings.load_profile("lakewright")


def pytest_configure(config):
    for package in ("core_jax", "policy", "engineer", "experiments"):
        config.addinivalue_line("filterwarnings", f"error:::{package}")
