# The face of the repository. Every target is a thin call of a script in scripts/ or of CMake, which can also be called
# alone; `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup build dev demo test test-quick test-engines soak mutations bench fuzz format lint clean

BINARY := build/release/bin/balanceroute
FUZZ_SECONDS ?= 120
DEMO ?=
SECONDS ?= 60

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install what building, testing and formatting need (Debian 12)
	@scripts/setup all

build: ## Build build/release/bin/balanceroute
	@scripts/setup build
	@scripts/build release balanceroute

dev: ## Build everything with assertions, into build/dev
	@scripts/setup build
	@scripts/build dev all

demo: build ## Route a real trace through an emulated fleet and compare the policies
	@$(BINARY) demo --workers 8 $(DEMO)

test: ## Run every check and every test
	@scripts/setup all
	@scripts/test

test-quick: ## Run the tests of the release build only
	@scripts/setup all
	@scripts/test --quick

test-engines: build ## Run the tests with an engine that is not of this repository
	@scripts/setup all
	@scripts/setup engines
	@.venv/bin/python -m pytest tests/system/test_other_engines.py

soak: build ## Load a router for SECONDS (60) while engines, clients and settings fail, then check its books
	@scripts/setup all
	@scripts/soak --seconds $(SECONDS)

mutations: ## Break the line that guards each public fault and want its test red (an hour)
	@scripts/setup all
	@scripts/mutations

bench: ## Run the benchmarks; results in build/release/bench/
	@scripts/setup build
	@scripts/bench

fuzz: ## Fuzz every parser for FUZZ_SECONDS each (120)
	@scripts/setup all
	@scripts/fuzz --seconds $(FUZZ_SECONDS)

format: ## Format the sources in place
	@scripts/format

lint: ## Check format, include rules and clang-tidy
	@scripts/setup all
	@scripts/format --check
	@scripts/check_layout
	@scripts/tidy

clean: ## Remove what the build made
	@rm -rf build
