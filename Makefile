# `make demo` and `make test` work from a fresh clone on a machine with Python, pip, git and make.
# Another Python: make test PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
FRAMEWORKS := build/frameworks
PEERS := build/peers
QUICK := "not gpu and not fault and not frameworks and not suite and not soak and not remote"

NOT_IMPORTED := '/(tests|testing|networkx|pip|setuptools|mypy|mypyc)/'

# Hundreds of processes import the same files: compiled once, whatever the shell's environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test tests lint style types compiled bench suite soak faults remote frameworks versions clean

demo: $(INSTALLED)
	$(BIN)/gpuwatch demo

# In `.ci/run`, where two jobs run at once, the tests begin while mypy still reads.
test: lint tests

# Half of the time it waits for processes: five at a time fill two cores.
tests: compiled
	$(BIN)/python -m pytest -m $(QUICK) -n 5 --dist worksteal

lint: style types

style: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(INSTALLED)
	$(BIN)/mypy

# Else each of the five compiles every test for itself.
compiled: $(INSTALLED)
	mkdir -p build
	$(BIN)/python -m pytest -m $(QUICK) --collect-only -qq > build/collected.txt || \
		{ cat build/collected.txt; exit 1; }

# What the probe costs, beside others, which lie in a folder of their own.
bench: $(INSTALLED) $(PEERS)/.installed
	PYTHONPATH=$(abspath $(PEERS)) $(BIN)/python -m tests.bench.cost --json build/cost.json

$(PEERS)/.installed: tests/bench/cost/peers.txt
	rm -rf $(PEERS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--target $(PEERS) --requirement tests/bench/cost/peers.txt
	touch $@

# Whether cost and memory stay flat: an hour of data played fast, then an hour of real training that
# two monitors watch. Another length of that: GPUWATCH_SOAK_MINUTES=10 make soak
soak: $(INSTALLED)
	$(BIN)/python -m pytest -m soak

# All that was recorded, judged again, and the tables of docs/accuracy_generated.md. First what takes
# the time of real runs, one at a time, whose cores nobody else may use.
suite: $(INSTALLED)
	$(BIN)/python -m pytest -m suite tests/demo/test_evaluate.py tests/demo/test_scenarios.py \
		tests/demo/test_generated_runs.py
	$(BIN)/python -m pytest -n 3 tests/demo/test_recorded_suite.py \
		tests/demo/test_recorded_runs.py tests/demo/test_recorded_ranks.py
	mkdir -p build
	for kept in cuda cpu ordinary; do \
		$(BIN)/python demo/evaluate_runs.py tests/recordings/generated/$$kept \
			--again --jobs 3 --out build/$$kept.json || exit 1; \
	done

# What may go wrong around a run, in full: a notebook's kernel, a thousand monitors, minutes of fuzz.
# Two at a time, but for the group that changes the machine (users, mounts) or counts on its pace.
faults: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[faults]'
	$(BIN)/python -m pytest -m "not gpu" -n 2 --dist loadgroup tests/faults tests/hostile

# Links to other machines, over real ssh servers, namespaces and SLURM where they are installed. One at
# a time: each looks at all agents of the machine.
remote: $(INSTALLED)
	$(BIN)/python -m pytest -m "not gpu" tests/remote

# Real runs under real frameworks, which have an environment of their own (2 GB).
frameworks: $(INSTALLED) $(FRAMEWORKS)/.installed
	GPUWATCH_FRAMEWORKS=$(abspath $(FRAMEWORKS))/bin/python \
		$(BIN)/python -m pytest -m "not gpu" tests/frameworks

$(FRAMEWORKS)/.installed: tests/frameworks/constraints.txt
	rm -rf $(FRAMEWORKS)
	$(PYTHON) -m venv $(FRAMEWORKS)
	$(FRAMEWORKS)/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement tests/frameworks/constraints.txt
	touch $@

# The probe on other Pythons and other torches: 5 GB for each pair, which are removed again.
versions: $(INSTALLED)
	$(BIN)/python -m tests.versions.matrix build/versions

# A torch that is already there is reused (it is large, and it is the one that fits the driver);
# then the machine's packages are visible in the environment. Without one, torch is installed in
# the version of constraints.txt. pip would compile all that on one core, and much that no run imports.
# The stamp is last, so that an interrupted install starts anew.
$(INSTALLED): pyproject.toml constraints.txt
	rm -rf $(VENV)
	if $(PYTHON) -c 'import torch' 2>/dev/null; then \
		$(PYTHON) -m venv --system-site-packages $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
			--editable '.[demo,test]'; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
			--constraint constraints.txt --editable '.[torch,demo,test]'; \
	fi
	$(BIN)/python -m compileall -qq -j 0 -x $(NOT_IMPORTED) $(VENV)/lib/python3*/site-packages || true
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
