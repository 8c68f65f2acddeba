# The front of the build: make, make run, make test. Meson and ninja do the work underneath.
MODE ?= release
BUILD ?= $(if $(filter release,$(MODE)),build,build-$(MODE))

MESON_release =
MESON_asan = -Db_sanitize=address,undefined -Db_lundef=false
MESON_tsan = -Db_sanitize=thread -Db_lundef=false
MESON_cov = -Db_coverage=true

.PHONY: all deps run test test-long bench install format clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) $(MESON_$(MODE)) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

deps:
	@tools/deps

run: all
	@tools/demo $(BUILD)/steno

test: all
	@tests/run $(BUILD)

test-long: all
	@STENO_TEST_LONG=1 tests/run $(BUILD)

bench: all
	@bench/run $(BUILD)

install: all
	@meson install -C $(BUILD)

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build build-*
