PYTHON ?= python3
BIN := .venv/bin
RUN ?= runs/demo

# One thread a test process: two that share cores slow each other down.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --durations=10

# Modules are kept as byte code, in spite of what the environment says: the tests start many processes that import torch.
export PYTHONDONTWRITEBYTECODE =

.PHONY: install demo lint docs test test-deep clean

install: .venv/installed

# torch first and by its exact version: this is the build without CUDA packages.
.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer with venv is needed: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --editable ".[dev,docs,view,cluster,structured,lora]"
	@command -v c++ >/dev/null && $(BIN)/pip install --quiet --no-compile --disable-pip-version-check --editable ".[bench]" || \
		echo "Left out: the second oracle of the tests, which needs a C++ compiler (apt-get install g++)"
	touch $@

demo: install
	$(BIN)/lakewright run --preset cpu --out $(RUN)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/docs.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml

test: lint docs
	$(PYTEST) -m "not deep"

# The long tests: two processes that train together, hundreds of thousands of fuzzed answers, many kills. Run before a release.
# `make test` compiles quickly; without XLA_FLAGS of its own, this compiles programs as users have them.
test-deep: install
	XLA_FLAGS= $(PYTEST) -m deep

clean:
	rm -rf .venv runs build
