# The commands of the project. All make the virtual environment `.venv` and install into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Matplotlib draws to files only.
export MPLBACKEND := Agg

.PHONY: demo test docs clean

demo: $(VENV)/.plots
	$(BIN)/bochner demo

test: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/python -m pytest -n 2 --dist worksteal
	$(BIN)/python tests/check_extras.py
	$(BIN)/python tests/check_wheel.py

# Runs every example; `BOCHNER_SHORT=1 make docs` shortens those that train for long.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going --quiet docs build/site
	@echo "Open build/site/index.html"

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bochner needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.plots: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) --editable '.[plots]'
	touch $@

$(VENV)/.docs: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist bochner-demo docs/gallery
