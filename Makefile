# The front of the build: make, make run, make test. Meson and ninja do the work underneath.
MODE ?= release
BUILD ?= $(if $(filter release,$(MODE)),build,build-$(MODE))

MESON_release =
# Under a sanitizer gcc warns of null pointers that its own checks have made possible.
MESON_asan = -Dwerror=false -Db_sanitize=address,undefined -Db_lundef=false -Dbench=false
MESON_tsan = -Dwerror=false -Db_sanitize=thread -Db_lundef=false -Dbench=false
MESON_cov = -Db_coverage=true

.PHONY: all deps run test test-long sanitized tests-only bench install format clean

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) $(MESON_$(MODE)) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

deps:
	@tools/deps

run: all
	@tools/demo $(BUILD)/steno

# Everything with the release build; the compiled tests once more under ASan and UBSan; those
# with threads under TSan.
THREADED = test_id,test_store_append,test_store_run,test_store_list,test_loop,test_provider
SANITIZED = $(if $(filter release,$(MODE)),--also build-asan --also build-tsan:$(THREADED))

test: all sanitized
	@tests/run $(BUILD) $(SANITIZED)

test-long: all sanitized
	@STENO_TEST_LONG=1 STENO_TEST_TIMEOUT=7200 tests/run $(BUILD) $(SANITIZED)

sanitized: all
ifeq ($(MODE),release)
	@$(MAKE) --no-print-directory MODE=asan tests-only
	@$(MAKE) --no-print-directory MODE=tsan tests-only
endif

# The library and the compiled tests, without the program and its page.
tests-only: $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet tests_all

bench: all
	@bench/run $(BUILD)

install: all
	@meson install -C $(BUILD)

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build build-*
