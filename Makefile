# make run    set up and run the whole pipeline on the embedded corpus
# make test   set up and pass ruff, mypy and pytest
# make bench  set up and run the benchmarks that need no other tool, on small input
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Without a GPU, PyTorch's own index serves wheels without CUDA, several GB smaller.
TORCH_INDEX := $(shell command -v nvidia-smi >/dev/null 2>&1 || echo --extra-index-url https://download.pytorch.org/whl/cpu)
# The system's ffmpeg if it is there, otherwise one from a wheel.
EXTRAS := $(shell command -v ffmpeg >/dev/null 2>&1 && command -v ffprobe >/dev/null 2>&1 && echo dev || echo dev,ffmpeg)
# text_rules needs datatrove and spaCy; efficacy trains for minutes.
BENCHES = $(filter-out claim harness text_rules efficacy,$(basename $(notdir $(wildcard benchmarks/*.py))))
export PATH := $(abspath $(BIN)):$(PATH)
export HF_HUB_OFFLINE ?= 1
# Each stage is a process, and would recompile our modules without bytecode files.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test bench setup check format clean

run: setup
	dvc repro
	gradsift report

test: setup check

bench: setup
	@failed=; for name in $(BENCHES); do echo "== $$name"; python benchmarks/$$name.py || failed="$$failed $$name"; done; \
	  test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

setup: $(STAMP)

check:
	ruff check .
	ruff format --check .
	mypy
	pytest -n 2 --dist loadfile --no-loadscope-reorder

format:
	ruff check --fix .
	ruff format .

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3.11"; exit 3; }
	@$(PYTHON) -m venv $(VENV) || { $(MAKE) --no-print-directory venv-package && $(PYTHON) -m venv $(VENV); }
	pip install --quiet --upgrade pip
	pip install --quiet --no-deps $(TORCH_INDEX) 'torch>=2.13,<2.14'
	pip install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

# Debian and Ubuntu ship Python without venv.
.PHONY: venv-package
venv-package:
	@test "$$(id -u)" = 0 || { echo "python3-venv is missing: sudo apt-get install python3-venv"; exit 3; }
	apt-get update -qq && apt-get install -y -qq python3-venv

clean:
	rm -rf data reports metrics plots dvc.lock
