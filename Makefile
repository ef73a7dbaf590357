# The two commands of the project. Both make the virtual environment `.venv` and install into it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Matplotlib draws to files only.
export MPLBACKEND := Agg

.PHONY: demo test clean

demo: $(VENV)/.plots
	$(BIN)/bochner demo

test: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/python -m pytest -n 2 --dist worksteal
	$(BIN)/python tests/check_extras.py
	$(BIN)/python tests/check_wheel.py

$(VENV)/.python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bochner needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.plots: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) --editable '.[plots]'
	touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist bochner-demo
