# Each target says in one line what it does; `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
CARGO ?= cargo
# Runs a command with a setting of the host, which is put back after it.
WITH_SETTING = $(CARGO) run -q --release --locked -p mydyno-host --example with_setting --

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps: ## install what the machine lacks: a MariaDB server and client (Debian packages)
	@scripts/install-deps

build: ## build the release binary, target/release/mydyno
	@$(CARGO) build --release --locked -p mydyno

demo: deps build ## a private server under load, an honest record, a report: about a minute after the build
	@target/release/mydyno demo

test: deps ## every test, real servers included
	@scripts/install-deps file-systems sysbench mysqlslap
	@CARGO="$(CARGO)" scripts/test

build-tests: deps ## build the tests and run none
	@$(CARGO) test --quiet --workspace --locked --no-run

format: ## check the formatting
	@$(CARGO) fmt --all --check

lint: format ## formatting and lints, as CI asks for them
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fmt: ## format the code
	@$(CARGO) fmt --all

docs: ## write the generated pages of docs/reference anew
	@MYDYNO_WRITE_DOCS=1 $(CARGO) test --locked -p mydyno --test e2e docs:: -- --test-threads=1

site: ## the site of the documentation, into target/site: built by mdBook (a package, brought on first use), its links and headings checked
	@scripts/site

pictures: deps ## keep the pictures of README and documentation anew, from the fixtures in a real Chromium
	@scripts/install-deps chromium
	@cd tests/browser && npm ci --silent && MYDYNO_WRITE_PICTURES=1 node --test pictures.test.js

bench: build ## measure beside sysbench (or AGAINST=an earlier build), interleaved: client CPU, throughput
	@scripts/install-deps sysbench
	@$(WITH_SETTING) kernel.sched_autogroup_enabled=0 -- bench/beside_sysbench.py --connections 64 $(if $(AGAINST),--against $(AGAINST),--must 0.6)

bench-table: build ## the whole speed table beside sysbench, its loads with autogroups off and on, with what must hold: about ten minutes on a quiet host; AGAINST=BINARY: its loads beside an earlier build
	@scripts/install-deps sysbench
	@failed=0; \
	$(WITH_SETTING) kernel.sched_autogroup_enabled=0 -- bench/speed_table.py $(if $(AGAINST),--against $(AGAINST)) || failed=1; \
	$(WITH_SETTING) kernel.sched_autogroup_enabled=1 -- bench/speed_table.py --only loads $(if $(AGAINST),--against $(AGAINST)) || failed=1; \
	exit $$failed

bench-compat: build ## `mydyno sysbench` beside sysbench, the same words, with autogroups off and on, with what must hold: about twenty minutes on a quiet host
	@scripts/install-deps sysbench
	@failed=0; \
	for autogroup in 0 1; do $(WITH_SETTING) kernel.sched_autogroup_enabled=$$autogroup -- bench/beside_sysbench_compat.py || failed=1; done; \
	bench/compat_memory.py || failed=1; \
	exit $$failed

bench-tpcc: build ## `bench tpcc --as sysbench-tpcc` beside sysbench with bench/tpcc.lua, interleaved, and batched beside single statements, with what must hold: about fifteen minutes on a quiet host
	@scripts/install-deps sysbench
	@bench/beside_tpcc.py --must
	@bench/beside_tpcc.py --batched --connections 16

bench-probe: build ## fsync and random-I/O probes beside fio, same parameters, interleaved: within 5 %
	@scripts/install-deps fio
	@bench/beside_fio.py $(if $(FOLDER),--folder $(FOLDER))

test-kill: deps build ## SIGKILL of bench and of server up at 50 random instants each: nothing may be left
	@MYDYNO_KILLS=50 MYDYNO_BIN=$(CURDIR)/target/release/mydyno \
	  $(CARGO) test --locked -p mydyno --test e2e kills:: -- --nocapture --test-threads=1

test-verdicts: deps build ## experiments whose answers follow from their construction (root, a quiet machine, about 20 minutes); BUDGET=10m for longer ones
	@tests/verdicts/verdicts.py $(CURDIR)/target/release/mydyno $(VERDICTS)

test-diagnosis: deps build ## faults brought about on a private server under load, and what watch names first (root, a quiet machine, about 30 minutes)
	@scripts/install-deps file-systems
	@tests/diagnosis/diagnosis.py $(CURDIR)/target/release/mydyno $(DIAGNOSIS)

test-kill-experiments: deps build ## SIGKILL, SIGTERM and SIGINT at 60 instants of experiments that change the host: nothing stays changed, no row is lost (root)
	@tests/verdicts/kills.py --kills 60 $(CURDIR)/target/release/mydyno

KILLS ?= 50
test-kill-levers: deps ## SIGKILL while every lever of this host is turned, KILLS random instants: all must be as before
	@scripts/install-deps file-systems
	@MYDYNO_KILLS=$(KILLS) $(CARGO) test --release --locked -p mydyno-sandbox --test it kills:: -- --nocapture --test-threads=1

COMMITS ?= 1000
test-crash: deps ## what crashes lose: durable settings and a power cut, flush_log=2 and SIGKILL, no barriers and a power cut, COMMITS each (root)
	@MYDYNO_COMMITS=$(COMMITS) $(CARGO) test --locked -p mydyno-sandbox --test it crashes:: -- --nocapture --test-threads=1

test-disk: ## the emulated disk against its own model, within 5 % (needs root and a quiet machine)
	@$(CARGO) test --locked -p mydyno-host --test it as_fast_as_its_model -- --ignored --nocapture

bench-audit: build ## an audit's time, and what it costs the server: 1,000 tables idle, 100,000 beside a load (about ten minutes)
	@bench/audit_cost.py $(if $(FOLDER),--folder $(FOLDER))

bench-captures: deps build ## what captured stacks cost beside a load (root, a quiet machine, about 5 minutes)
	@bench/captures_cost.py $(CURDIR)/target/release/mydyno

bench-watch: build ## `mydyno watch` beside iostat, mpstat and vmstat (Debian: sysstat) under load, and its cost at one second: two minutes
	@bench/watch_beside_sysstat.py target/release/mydyno

bench-aa: build ## 20 experiments whose arms do not differ (root, a quiet machine; two hours; goes on where it stopped): OUT=DIR, BUDGET=5m
	@bench/live_aa.py --out $(or $(OUT),target/live_aa) --budget $(or $(BUDGET),5m)

experiments: build ## every experiment with --quick, one after the other (root; about three hours; goes on where it stopped): OUT=DIR, PART=2/3, PAGES=DIR
	@scripts/experiments --out $(or $(OUT),target/experiments) --part $(or $(PART),1/1) $(if $(PAGES),--pages $(PAGES))

bench-decision: build ## time to a decision by slices of 1 s and by rows of 15 s, three loads (a quiet machine; one to two hours)
	@bench/decision_time.py --budget $(or $(BUDGET),15m)

bench-restore: build ## how long restoring 1 GiB of data takes, by copy and by shared blocks (XFS, btrfs), and of a real server's
	@scripts/install-deps file-systems
	@bench/restore.py $(if $(FOLDER),--folder $(FOLDER))
	@$(CARGO) test --locked -p mydyno-sandbox --lib restoring_a_gigabyte -- --ignored --nocapture

test-faults: deps ## faults of the host's settings, brought about for a moment (as root; brings a MySQL), named by the audit, put right
	@tests/engines/fetch $(ENGINES) mysql-8.0
	@MYDYNO_ENGINES=$(ENGINES) $(CARGO) test --locked -p mydyno --test e2e faults -- --include-ignored --test-threads=1

test-fix: deps ## the files of audit --fix before Ansible, tuned, systemd and sysctl themselves (Debian packages)
	@scripts/install-deps ansible-playbook tuned
	@$(CARGO) test --locked -p mydyno --test e2e fix:: -- --ignored

test-ssh: ## the audit over a real sshd on loopback (installs Debian's openssh-server)
	@scripts/install-deps ssh
	@$(CARGO) test --locked -p mydyno --test e2e ssh:: -- --ignored

test-browser: deps build ## the report of fixtures and two real runs, and the page of a real audit, in a real Chromium (needs node 18, installs Debian's chromium)
	@scripts/install-deps chromium
	@cd tests/browser && npm ci --silent && MYDYNO_BIN=$(abspath $(or $(CARGO_TARGET_DIR),target))/release/mydyno npm test

ENGINES ?= $(HOME)/.cache/mydyno/engines
test-engines: deps ## eleven real servers (brought on first use, 1.4 GB) × authentication, TLS, compression, socket, TCP, workloads, audits
	@tests/engines/fetch $(ENGINES)
	@MYDYNO_ENGINES=$(ENGINES) MYDYNO_WRITE_DOCS=1 $(CARGO) test --locked -p mydyno-wire --test it engines:: -- --ignored --nocapture
	@MYDYNO_ENGINES=$(ENGINES) $(CARGO) test --locked -p mydyno-sandbox --test it engines:: -- --ignored --nocapture
	@MYDYNO_ENGINES=$(ENGINES) MYDYNO_WRITE_DOCS=1 $(CARGO) test --locked -p mydyno --test e2e engines -- --ignored --nocapture

test-docs: deps build ## the commands of README and the documentation on private servers, page by page (some minutes)
	@tests/engines/fetch $(ENGINES) mariadb-11.4
	@MYDYNO_ENGINES=$(ENGINES) tests/docs/commands.py $(abspath $(or $(CARGO_TARGET_DIR),target))/release/mydyno

test-rogue: deps build ## more than sixty ways of a server to go wrong, in every phase × every verb with a target: limits, memory, status, passwords (some minutes)
	@MYDYNO_BIN=$(CURDIR)/target/release/mydyno \
	  $(CARGO) test --locked -p mydyno --test e2e all_rogue_servers -- --ignored --nocapture

test-hostile: deps build ## 1,600 damaged and hostile records, bundles, option files, mixes, claims and experiments: 10 s, 200 MB, damage told
	@MYDYNO_BIN=$(CURDIR)/target/release/mydyno \
	  $(CARGO) test --locked -p mydyno --test e2e all_hostile_files -- --ignored --nocapture

knobs: deps ## ask the eleven servers anew what they take, and write knobs/servers (about a minute once they are there)
	@tests/engines/fetch $(ENGINES)
	@scripts/knobs $(ENGINES)

FUZZ_TIME ?= 60
FUZZERS := fuzz fuzz_files fuzz_records
fuzz: ## fuzz what servers and files can say, FUZZ_TIME seconds for each of twelve targets
	@# With the whole workspace's features, as the tests were built, nothing is built again.
	@$(CARGO) build --quiet --workspace --locked $(FUZZERS:%=--example %)
	@for fuzzer in $(FUZZERS); do "$${CARGO_TARGET_DIR:-target}/debug/examples/$$fuzzer" $(FUZZ_TIME) & jobs+=($$!); done; \
	  failed=0; for job in "$${jobs[@]}"; do wait "$$job" || failed=1; done; exit $$failed

fuzz-coverage: ## the same, one after the other, guided by coverage (needs a nightly compiler)
	@crates/wire/fuzz/run $(FUZZ_TIME)

SEEDS ?= 1000
stats: ## coverage of intervals and error rates of verdicts on simulated series, SEEDS seeds each
	@$(CARGO) run -q --release --locked -p mydyno-sim --example measure -- $(SEEDS) \
	  | tee $(if $(MYDYNO_WRITE_DOCS),docs/journal/statistics-measured.md,/dev/null)

dist: ## static binaries for x86-64 and aarch64 in every form and one for glibc, into dist/: tarball, deb, rpm, wheel, container file, SBOM, checksums
	@scripts/install-deps dist
	@scripts/dist

test-dist: ## installs and tries what `make dist` made: empty root, fresh Debian, deb, rpm, wheel (root)
	@scripts/install-deps test-dist
	@tests/dist/smoke dist

bench-report: ## what reading, summarising and rendering a record of one hour with 20 operations costs
	@$(CARGO) run -q --release --locked -p mydyno-report --example report_hour

.PHONY: help deps build build-tests demo site pictures test lint format fmt docs bench bench-table bench-compat bench-tpcc bench-probe bench-captures bench-audit bench-watch bench-aa bench-decision experiments test-kill test-kill-levers test-crash test-disk bench-restore \
  test-verdicts test-kill-experiments test-diagnosis test-faults test-fix test-ssh test-browser test-engines test-docs test-rogue test-hostile knobs fuzz fuzz-coverage stats bench-report dist test-dist
