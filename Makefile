# Everything a newcomer or CI needs. Each target installs what it needs into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-test
TOOLS := $(VENV)/build-requires.txt
CPP := $(shell find cpp fuzz -name '*.?pp')
# The tests, and the examples in the docstrings of the package as installed, on all cores.
TESTS := -n auto --dist worksteal --pyargs tests pegasos

# Every target installs with the same flags into the same build directory, so that the second has nothing to compile.
# pip's own environment for builds has another path each time, for which scikit-build-core throws away all object files:
# what builds the package is installed beside it. Warnings are errors where WERROR=ON says so, as .ci/run does.
WERROR ?= OFF
INSTALL := $(BIN)/pip install --quiet --no-build-isolation --config-settings=cmake.define.PEGASOS_WERROR=$(WERROR)

.PHONY: help demo test test-all test-simd test-lowest lint stub format bench docs sanitize fuzz fuzz-models build-times check-simd needs clean

help:
	@echo "make demo      install, train on embedded data, show progress and certificate, draw a plot"
	@echo "make test      install, check style and types, run the tests"
	@echo "make test-all  the same with the slow tests, then make test-simd and make test-lowest"
	@echo "make test-simd the tests at each instruction set that this processor has besides its best one"
	@echo "make test-lowest  the tests with the lowest versions of all dependencies that pyproject.toml declares"
	@echo "make stub      write the types of the C++ core anew, after a change in cpp/bind/"
	@echo "make sanitize  the tests on a build with the address and undefined-behaviour sanitizers"
	@echo "make fuzz      throw random files at the svmlight reader, under sanitizers, for FUZZ_SECONDS (needs clang)"
	@echo "make fuzz-models  the same for model files (FUZZ_SECONDS, 600)"
	@echo "make build-times  how long each source of the core takes to compile;  make check-simd  which instructions they use"
	@echo "make docs      build the documentation into docs/_build/html"
	@echo "make bench     compare with other libraries (installs them)"

# What must be there before anything can be installed, and how to get it.
needs:
	@command -v $(PYTHON) >/dev/null || { echo "Python is missing ($(PYTHON)): Debian and Ubuntu apt-get install python3 python3-venv, Fedora dnf install python3, macOS brew install python; or name one with PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: install a newer Python and name it with PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "Python's venv module or pip is missing: Debian and Ubuntu apt-get install python3-venv python3-pip"; exit 1; }
	@command -v $${CXX:-c++} >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || { echo "A C++20 compiler is missing ($${CXX:-c++}): Debian and Ubuntu apt-get install g++, Fedora dnf install gcc-c++, macOS xcode-select --install; or name one with CXX=..."; exit 1; }

$(VENV)/bin/python: | needs
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(TOOLS): $(VENV)/bin/python pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $@.new
	$(BIN)/pip install --quiet -r $@.new cmake ninja
	@mv $@.new $@

# The package is installed as users get it, and again whenever its sources change.
$(STAMP): $(TOOLS) CMakeLists.txt $(CPP) $(shell find src -name '*.py' -o -name '*.css')
	$(INSTALL) ".[test]"
	@touch $@

demo: $(TOOLS)
	$(INSTALL) ".[plots]"
	$(BIN)/python examples/demo.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/python tools/core_stub.py --check
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest $(TESTS)

test-all: lint
	PEGASOS_TEST_PROCESSES=1 $(BIN)/python -m pytest -m "" $(TESTS)
	$(MAKE) test-simd test-lowest

# The quick tests at each instruction set below the best one; PEGASOS_SIMD refuses those that the processor lacks.
test-simd: $(STAMP)
	PEGASOS_SIMD=baseline $(BIN)/python -m pytest $(TESTS)
	$(BIN)/python -c 'from pegasos import _core; raise SystemExit(_core.instruction_set() == "baseline")' || exit 0; \
	  PEGASOS_SIMD=avx2 $(BIN)/python -m pytest $(TESTS)

# What users install is held to the lowest versions declared, for which there are wheels for the lowest Python; the
# tools of the tests may be newer.
LOWEST_PYTHON ?= $(shell python3.11 -c "print('python3.11')" 2>/dev/null || echo $(PYTHON))
test-lowest:
	test -d .venv-lowest || $(LOWEST_PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet --upgrade pip
	.venv-lowest/bin/python tools/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/pip install --quiet --constraint .venv-lowest/lowest.txt ".[test]"
	.venv-lowest/bin/python -m pytest -p no:cacheprovider $(TESTS)

# The types of the core as installed, for the type checker; make lint compares.
stub: $(STAMP)
	$(BIN)/python tools/core_stub.py

# CPU-seconds of every source of the core, compiled anew; and proof that only dispatched files need a newer processor.
build-times: $(STAMP)
	$(BIN)/python tools/build_times.py
check-simd: $(STAMP)
	$(BIN)/python tools/check_instructions.py $(wildcard build/cp*)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# A second environment, so that the slow build never gets into the way. Python itself is not instrumented: its
# interpreter-lifetime allocations are no leaks of ours.
sanitize:
	test -d .venv-sanitize || $(PYTHON) -m venv .venv-sanitize
	.venv-sanitize/bin/pip install --quiet --upgrade pip
	.venv-sanitize/bin/pip install --quiet --config-settings=cmake.define.PEGASOS_SANITIZE=ON \
	  --config-settings=cmake.build-type=Debug --config-settings=build-dir=build/sanitize ".[test]"
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 .venv-sanitize/bin/python -m pytest -n auto -p no:cacheprovider -m "not slow and not unsanitized" tests

# libFuzzer comes with clang. What it finds on the way stays in build/fuzz; the corpus in fuzz/ is only read, and any
# file that made it stop is left at the top of build/fuzz.
FUZZ_SECONDS ?= 600
FUZZ_CXX ?= $(firstword $(foreach c,clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14,$(shell command -v $(c))))
fuzz:
	@test -n "$(FUZZ_CXX)" || { echo "make fuzz needs clang with libFuzzer; name it with FUZZ_CXX=..."; exit 1; }
	mkdir -p build/fuzz/svmlight
	$(FUZZ_CXX) -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Icpp -pthread \
	  fuzz/svmlight.cpp cpp/pegasos/text/svmlight_read.cpp cpp/pegasos/text/svmlight_write.cpp -o build/fuzz/fuzz-svmlight
	build/fuzz/fuzz-svmlight build/fuzz/svmlight fuzz/corpus/svmlight -dict=fuzz/svmlight.dict -max_len=4096 \
	  -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/ -print_final_stats=1

# Finds of earlier runs are kept in fuzz/corpus/models and tried first.
fuzz-models: $(STAMP)
	$(BIN)/pip install --quiet atheris
	$(BIN)/python fuzz/fuzz_model.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -rss_limit_mb=2048 fuzz/corpus/models

docs: $(TOOLS)
	$(INSTALL) ".[docs]"
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

bench: $(TOOLS)
	$(INSTALL) ".[bench]"
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf build dist .venv .venv-lowest .venv-sanitize docs/_build demo
