# make demo and make test set themselves up on a bare Python 3.11: uv if it is there, else pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

ifeq ($(UV),)
install = $(BIN)/python -m pip install --quiet
else
install = uv pip install --quiet --python $(BIN)/python
endif

.PHONY: demo test setup lint type bench clean

demo: $(VENV)/.demo
	$(BIN)/assay run similarity groundedness datasets/support_desk.jsonl --judge baseline --target flows/grounded_answer --name demo-target
	$(BIN)/assay run document_retrieval ndcg ndcg_linear hit_rate mrr map recall_at_k precision_at_k datasets/retrieval.jsonl --name demo-retrieval
	$(BIN)/assay run exact_match f1 rouge bleu gleu chrf meteor semscore answer_similarity datasets/support_desk.jsonl --name demo-text
	$(BIN)/assay run similarity groundedness relevance datasets/support_desk.jsonl --judge baseline --name demo
	$(BIN)/assay report

test: setup
	$(BIN)/python -m pytest

setup: $(VENV)/.dev

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/assay check evaluators flows

type: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/python bench/run.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache

$(BIN)/python:
ifeq ($(UV),)
	$(PYTHON) -m venv $(VENV)
else
	uv venv --quiet --allow-existing --python $(PYTHON) $(VENV)
endif

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(install) --editable ".[baseline,text]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(install) --editable ".[dev]"
	touch $@ $(VENV)/.demo
