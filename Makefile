PYTHON ?= python3
BIN := .venv/bin
RUN ?= runs/demo

# One thread a test process: two that share cores slow each other down.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --durations=10

# Modules are kept as byte code, in spite of what the environment says: a command that must compile them starts seconds
# later, and so does each process of the tests. What takes longest is compiled when installed: the largest packages, and
# the solver's search.
export PYTHONDONTWRITEBYTECODE =
COMPILED := import jax, flax, pandas, pyarrow.parquet, torch, transformers, trl, peft, ray, scipy.stats, sklearn.linear_model, networkx, hypothesis, playwright.sync_api, lakewright.experiments.loop.closed_loop, lakewright.core_jax.solver.solver as s; s.prepare_solver(3, 3)

# What is installed: `make lock` pins it, `make install` installs that and nothing newer.
TORCH := torch==2.13.0
UV := uv==0.13.9
EXTRAS := lake dev docs sweeps view environments cluster structured lora gguf
GPU_EXTRAS := lake gpu sweeps vllm sharded structured lora
PIP := $(BIN)/pip --quiet --disable-pip-version-check
UV_PIP := $(BIN)/uv pip install --quiet --python $(BIN)/python

.PHONY: install install-gpu lock licences audit demo lint docs test test-deep clean

install: .venv/installed

# torch comes first, by pip and by its exact version, which is the build without CUDA packages where pip is set up for it;
# the lock leaves torch out, so that any build of it may be there. uv installs the rest.
.venv/installed: pyproject.toml setup.py .ci/requirements.lock
	@$(PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer with venv is needed: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv .venv
	$(PIP) install --no-compile $(TORCH) $(UV)
	$(UV_PIP) --no-deps --require-hashes --requirements .ci/requirements.lock
	$(UV_PIP) --no-deps --no-build-isolation --editable .
	$(BIN)/python -c "$(COMPILED)"
	@command -v c++ >/dev/null && $(UV_PIP) --constraint .ci/requirements.lock --requirements pyproject.toml --extra bench || \
		echo "Left out: the second oracle of the tests, which needs a C++ compiler (apt-get install g++)"
	touch $@

# On a Linux host with NVIDIA GPUs: torch and JAX with CUDA, vLLM and DeepSpeed, in a lock of their own, as vLLM asks for
# versions of its own. Python 3.11, which the lock is made for, comes with uv where there is no other.
install-gpu:
	$(PYTHON) -m venv .venv/uv
	.venv/uv/bin/pip --quiet --disable-pip-version-check install $(UV)
	.venv/uv/bin/uv venv --quiet --allow-existing --python 3.11 .venv
	.venv/uv/bin/uv pip install --python $(BIN)/python --no-deps --require-hashes --requirements .ci/requirements-gpu.lock
	.venv/uv/bin/uv pip install --python $(BIN)/python --no-deps --no-build-isolation --editable .

# The newest versions that pyproject.toml allows, for every platform and Python it supports, with their hashes; those for
# GPU hosts for Linux and Python 3.11 only, and with what torch really asks for (see tool.uv in pyproject.toml).
lock: install
	mkdir -p build && echo $(TORCH) >build/torch.txt
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-package torch \
		--constraint build/torch.txt $(EXTRAS:%=--extra %) --no-header --output-file .ci/requirements.lock pyproject.toml
	$(BIN)/uv pip compile --no-config --quiet --upgrade --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
		--generate-hashes --constraint build/torch.txt $(GPU_EXTRAS:%=--extra %) --no-header \
		--output-file .ci/requirements-gpu.lock pyproject.toml

# The licences of everything that is installed, in docs/licences.md.
licences: install
	{ echo "# Licences of all dependencies"; echo; echo "Made by \`make licences\` from the installed packages. \`resvg_py\` states its licence (MIT) in a file only."; echo; \
		$(BIN)/pip-licenses --format=markdown --order=license --ignore-packages lakewright; } >docs/licences.md

# Known weaknesses of the locked versions, from the registry; needs its vulnerability data, which mirrors may lack.
audit: install
	$(BIN)/uv tool run pip-audit --requirement .ci/requirements.lock --no-deps --disable-pip --strict

demo: install
	$(BIN)/lakewright run --preset cpu --out $(RUN)

lint: install build/namespace
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=build/namespace $(BIN)/mypy

# The folders under the names that they are installed by, for tools that look for files.
build/namespace:
	mkdir -p $@/lakewright
	for wing in core_jax policy engineer experiments; do ln -sfn ../../../$$wing $@/lakewright/$$wing; done

# The site, in build/docs.
docs: install build/namespace
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml

# The pages are checked, and nobody searches them: the index takes a third of their time, and `make docs` makes it.
test: export SITE_SEARCH := false
test: lint docs
	$(PYTEST) -m "not deep"

# The long tests: two processes that train together, hundreds of thousands of fuzzed answers, many kills, and other people's
# tools, which get environments of their own in build/environments, from the registry; then properties on ten times as many
# examples. Run before a release.
# `make test` compiles quickly; without XLA_FLAGS of its own, this compiles programs as users have them.
test-deep: install
	XLA_FLAGS= $(PYTEST) -m deep
	LAKEWRIGHT_EXAMPLES=10 $(PYTEST) -m "hypothesis and not deep"

clean:
	rm -rf .venv runs build
