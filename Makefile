# The front of the build: make, make run, make test. Meson and ninja do the work underneath.
MODE ?= release
BUILD ?= $(if $(filter release,$(MODE)),build,build-$(MODE))

MESON_release =
# With -Og a sanitized build takes half as long as with -O2, and its tests take as long as before.
# A report needs lines and functions (-g1), not variables. Undefined behaviour ends in an illegal
# instruction, which ASan reports with its line. UBSan's own words would be 100,000 variables, which ASan
# registers and searches for leaks whenever a program starts and ends: as much work as all the rest.
# BUILD=build-words TRAP= are for who wants to read the words.
TRAP = -fsanitize-undefined-trap-on-error
MESON_asan = -Doptimization=g -Dc_args='-g1 $(TRAP)' -Db_sanitize=address,undefined -Db_lundef=false
MESON_tsan = -Doptimization=g -Dc_args=-g1 -Db_sanitize=thread -Db_lundef=false
MESON_cov = -Db_coverage=true

.PHONY: all deps deps-test deps-npm deps-long run test test-long set-up made-once prepared with-tests sanitized-set-up sanitized mutants bench growth install uninstall deb dist format clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

# A build has neither tests nor benchmarks until somebody asks for them, and so does not need what
# they need. What is compiled stays as it is when they are added.
TESTS = false
BENCH = false
$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) -Dtests=$(TESTS) -Dbench=$(BENCH) $(MESON_$(MODE)) \
		$(if $(MADE),-Dmade=$(MADE)) >$(BUILD).log 2>&1 || \
		{ cat $(BUILD).log; exit 1; }

deps:
	@tools/deps build

deps-test:
	@tools/deps test

deps-npm: deps-test
	@tools/deps npm

deps-long:
	@tools/deps long

run: all
	@tools/demo $(BUILD)/steno

# Under TSan only what has threads is run, so only that is built.
TARGETS_tsan = steno tests/base/test_id tests/base/test_wait tests/store/test_store_append tests/store/test_store_run $\
	tests/store/test_store_list tests/loop/test_loop tests/provider/test_provider $\
	tests/loop/loop_driver tests/mcp/mcp_driver tests/support/libkill_at.so

# set-up: this build with the tests, before anything is compiled.
set-up: TESTS = true
set-up: deps-test $(BUILD)/build.ninja
	@[ -e $(BUILD)/tests/list ] || \
		{ meson configure $(BUILD) -Dtests=true && ninja -C $(BUILD) --quiet build.ninja; }

# What the other builds take from this one has to be there before they are set up.
made-once: set-up
	@ninja -C $(BUILD) --quiet made_once

with-tests: made-once
	@ninja -C $(BUILD) --quiet $(TARGETS_$(MODE))

# Everything with the release build. Everything that runs our code once more under ASan and UBSan,
# save the page, whose time is the browser's, and what loads a library before the sanitizer's. What
# has threads under TSan.
# The short run leaves out scripts that read the same views over and over or wait most of the time.
ASAN = *,!layers.test,!package/*,!bindings/*,!support/run.test,!ui/*,!http/browser.test,!http/clock.test$(ASAN_LONG)
ASAN_LONG = ,!gateway/sdks.test,!events.test,!mcpd/clients.test,!cli/views.test,!format/cost.test,!cli/help.test,!mutants.test,!store/both.test,!loop/one_run.test,!test_mcp_large,!loop/random_shape.test,!http/bodies.test,!loop/states.test,!loop/commands.test,!gateway/damaged.test,!cli/strange.test,!cli/grammar.test,!http/calls.test,!http/carried.test,!api/quota.test,!test_roundtrip,!cli/completion.test,!cli/docs.test,!format/calls.test,!http/otel.test,!mcpd/conformance.test,!loop/mcp.test,!docs.test,!examples.test,!golden/*,!strict/*,!recipes.test,!exec/shield.test,!test_bundle_backup,!test_bundle_faults,!bundle/carry.test,!gateway/lineage.test,$\
	!gateway/recipes.test,!gateway/stubs.test,!gateway/responses.test,!gateway/equal.test,!gateway/aisdk.test,!gateway/kill.test,!acp/kill.test,$\
	!test_store_mutants,!test_output_grep_cost,!test_output_grep_cost_sieve,!http/aborted.test,!http/refusals.test,!http/load.test,$\
	!store/failover.test,!store/full.test,!store/machines.test,!store/s3.test,!http/visitors.test,!http/budget.test,!import/*,!bundle/*.test,!cli/damage.test,!loop/kill.test,$\
	!loop/death.test,!loop/text_calls.test,!view/*.test,!search/*,!http/vercel.test
TSAN_LONG = ,!gateway/sdks.test,!loop/random_shape.test,!http/bodies.test,!http/json.test,!loop/states.test,!loop/one_run.test,!http/otel.test,!http/aborted.test,!http/members.test,!http/access.test,!http/carried.test,!http/spelling.test,!http/calls.test,!loop/large_reply.test,!loop/materialize.test,!loop/death.test,!loop/read_only.test,!acp/*,!gateway/stubs.test,!gateway/responses.test,!http/visitors.test,!http/refusals.test,!http/budget.test,!http/ids.test,$\
	!http/chatpage.test,!http/whole.test,!http/vercel.test,!http/chatapp.test,!http/agui.test,!http/disks.test,!loop/text_calls.test,!loop/kill.test,!loop/commands.test
test-long: ASAN_LONG =
test-long: TSAN_LONG =
TSAN = test_id,test_wait,test_store_append,test_store_run,test_store_list,test_loop,test_provider,$\
	http/*,!http/browser.test,!http/clock.test,loop/*,gateway/sdks.test,gateway/stubs.test,gateway/responses.test,acp/*$(TSAN_LONG)
SANITIZED = $(if $(filter release,$(MODE)),--also 'build-asan:$(ASAN)' --also 'build-tsan:$(TSAN)' $\
	--meanwhile '$(MAKE) --no-print-directory sanitized')

test: deps-test
	@$(MAKE) --no-print-directory -j3 prepared
	@tests/run $(BUILD) $(SANITIZED)

test-long: deps-long deps-test
	@$(MAKE) --no-print-directory -j3 prepared
	@STENO_TEST_LONG=1 tests/run $(BUILD) $(SANITIZED)

# What each leaves of two processors, the others take.
prepared: deps-npm with-tests sanitized-set-up

# Two more builds. They are compiled while the first tests run, which wait more than they compute. The
# page and the tables of tokens are those of the first build.
sanitized-set-up: made-once
ifeq ($(MODE),release)
	@$(MAKE) --no-print-directory MODE=asan MADE=$(abspath $(BUILD)) set-up
	@$(MAKE) --no-print-directory MODE=tsan MADE=$(abspath $(BUILD)) set-up
endif

sanitized:
	@$(MAKE) --no-print-directory MODE=asan with-tests
	@$(MAKE) --no-print-directory MODE=tsan with-tests

# Plants faults, one after the other, and shows which test notices.
mutants: with-tests deps-npm
	@tests/mutants/run

bench: BENCH = true
bench: deps-npm $(BUILD)/build.ninja
	@[ -e $(BUILD)/bench ] || meson configure $(BUILD) -Dbench=true
	@ninja -C $(BUILD) --quiet
	@bench/run $(BUILD) | tee $(BUILD)/bench.json
	@bench/plot $(BUILD)/bench.json $(BUILD)/growth >&2

# growth: only the growth curves, up to a million messages and conversations, as the pictures of
# docs/performance.md. On an otherwise idle machine, with 40 GB of disk to spare.
growth: export STENO_BENCH_GROWTH ?= 6
growth: GROWTH ?= docs/growth
growth: BENCH = true
growth: deps-npm $(BUILD)/build.ninja
	@[ -e $(BUILD)/bench ] || meson configure $(BUILD) -Dbench=true
	@ninja -C $(BUILD) --quiet steno bench/bench_growth bench/bench_server
	@bench/run $(BUILD) bench_growth growth.mjs "bench_server $${STENO_BENCH_DIR:-$(BUILD)/bench} followers" \
		>$(BUILD)/growth.json
	@bench/plot $(BUILD)/growth.json $(GROWTH) >&2

# PREFIX=DIR is another place than /usr/local.
install: all
	@[ -z "$(PREFIX)" ] || meson configure $(BUILD) --prefix "$(abspath $(PREFIX))"
	@meson install -C $(BUILD) --quiet

uninstall:
	@ninja -C $(BUILD) --quiet uninstall

# The Debian packages, in build/deb.
deb: deps
	@tools/deps deb
	@tools/deb

# One static file for any Linux, in build/dist: x86-64 and arm64, or ARCH=amd64 alone.
dist: deps
	@tools/dist $(ARCH)
	@STENO=$(BUILD)/steno tests/package/dist

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build build-*
