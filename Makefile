# writ: everything a person types. `make help` lists it; meson does the work.
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 300
WRIT = build/release/prog/writ

build: deps-build ## the static binary, in build/release/prog/writ
	@tools/build.sh release installed

demo: build ## a first look: a policy, what it means, what enforces it here
	@WRIT=$(CURDIR)/$(WRIT) sh tools/demo.sh

check: ## an answer in about a minute: build, C unit tests, transcripts, lints; installs nothing
	@WRIT_NO_APT=1 tools/deps.sh build
	@tests/run check

test: deps-test ## everything that must hold; the last line counts it
	@tools/agents.sh
	@tests/run

test-long: deps-long deps-clients ## the same with long fuzzing, a million oracle pairs, all clients, reproducible dist, other kernels
	@tools/agents.sh
	@tools/peers-proof.sh
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run --long

lint: deps-test ## modules, sizes, documents, clang-tidy
	@tests/run release clang lint tidy

fuzz: deps-fuzz ## every fuzz target for FUZZ_SECONDS (300), stops at a finding
	@tools/build.sh fuzz
	@tools/fuzz.py --seconds $(FUZZ_SECONDS)

bench: build deps-peer-bwrap ## budgets, measured against peers in the same run (QUICK=1: fewer rounds)
	@tools/build.sh release
	@bench/run.py; bench/sandbox.py $(if $(QUICK),--quick)
	@bench/scale.py $(if $(QUICK),--quick); [ $$(id -u) -ne 0 ] || bench/scale.py --root $(if $(QUICK),--quick)
	@tools/peers-net.sh; bench/egress.py; bench/bounds.py

install: build ## into PREFIX (/usr/local); DESTDIR is for packagers
	@DESTDIR='$(DESTDIR)' tools/install.sh '$(PREFIX)'

deb: build ## dist/writ_VERSION_ARCH.deb
	@packaging/deb/build.sh

dist: build ## dist/writ-VERSION-linux-ARCH.tar.gz and SHA256SUMS
	@tools/dist.sh

format: deps-format ## apply .clang-format to FILES="..."
	@clang-format -i $(FILES)

clean: ## remove what was built
	@rm -rf build dist

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

deps-%:
	@tools/deps.sh $*

.PHONY: build demo check test test-long lint fuzz bench install deb dist format clean help
