# make run     install what is missing, build, run the quick start
# make test    install what is missing, build, run every test
# make build   the program (build/release/dipsim) and the benchmarks (build/release/dipsim_bench)
# make asan    the tests under the address and undefined-behaviour sanitizers
# make bench   the benchmarks; results in out/bench.json
# make validation PUBLISHED=DIR   docs/validation.md anew, from the tables of published measurements in DIR
# make paper   docs/paper.md anew: the experiments of the DIP paper (minutes)
# make lint    format, self-contained headers, clang-tidy;  make format   rewrite in place
# make clean   remove build/ and out/

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
RELEASE := build/release
DIPSIM := $(RELEASE)/dipsim

.DEFAULT_GOAL := build
.PHONY: run test build asan tsan bench validation paper lint format clean packages packages-dev configure

run: configure
	cmake --build --preset release -j $(JOBS) --target dipsim
	$(DIPSIM) compare configs/experiments/quickstart.json --out out/quickstart

test: configure
	cmake --build --preset release -j $(JOBS)
	ctest --preset release -j $(JOBS)

build: configure
	cmake --build --preset release -j $(JOBS) --target programs

asan tsan: packages
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	ctest --preset $@ -j $(JOBS)

bench: build
	@mkdir -p out
	$(RELEASE)/dipsim_bench --benchmark_out=out/bench.json --benchmark_out_format=json

validation: build
	@test -n "$(PUBLISHED)" || { echo "PUBLISHED=DIR must name the folder of the tables"; exit 2; }
	$(DIPSIM) validate --published "$(PUBLISHED)" --format markdown > docs/validation.md.new
	mv docs/validation.md.new docs/validation.md

paper: build
	$(DIPSIM) validate --paper --format markdown > docs/paper.md.new
	mv docs/paper.md.new docs/paper.md

lint: packages-dev configure
	scripts/own_files.sh | xargs clang-format-19 --dry-run --Werror
	cmake --build --preset release -j $(JOBS) --target all_verify_interface_header_sets
	scripts/own_files.sh '*.cpp' | xargs -n 1 -P $(JOBS) clang-tidy-19 --quiet -p $(RELEASE)

format: packages-dev
	scripts/own_files.sh | xargs clang-format-19 -i

clean:
	rm -rf build out

packages:
	@scripts/install_packages.sh packages.txt

packages-dev:
	@scripts/install_packages.sh packages-dev.txt

configure: packages
	cmake --preset release
