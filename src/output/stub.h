/*
 * stub.h - what a model sees in place of a large output.
 *
 *         [INCOMPLETE: 4.1 KB of 1.8 MB shown; the rest is in ctx_01J...]
 *         tool: build/run_tests   call: call_7f   output: text, 31,204 lines ...   exit: 1
 *         --- head (lines 1-40) ---
 *         --- errors (lines 812, 30990) ---
 *         --- outline ---                                  (JSON only)
 *         --- tail (lines 31165-31204) ---
 *         More: context_tail(ref="ctx_01J...", lines=200) or context_grep(...). Do not run ...
 *
 * Promises:
 *   1. The same input gives the same bytes.
 *   2. A stub is smaller than half of the output that it replaces. To reach this, snippets shrink,
 *      the tail last; then forms without snippets are tried, down to one line. Outputs of less than
 *      about 200 bytes, which no policy replaces, are an exception: they may get that line even if
 *      it is larger.
 *   3. The output cannot imitate the frame: a line of the output that looks like one of the frame's
 *      lines gets a backslash before it (clean.h), and names from outside are quoted unless they
 *      are plain.
 *   4. Only tools that the model has are named.
 *   5. A stub is valid UTF-8, without control characters except line feed and tab.
 */
#ifndef OUTPUT_STUB_H
#define OUTPUT_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "output/excerpt.h"
#include "steno.h"

/* The maximum size of a stub with default excerpt options; policy_is_stub relies on it. */
#define STUB_MAX 12288

enum stub_kind {
        STUB_TEXT,
        STUB_JSON,
        STUB_BINARY,
};

/* The tools that the model really has. */
enum stub_tools {
        STUB_HAS_LIST = 1,
        STUB_HAS_READ = 2,
        STUB_HAS_TAIL = 4,
        STUB_HAS_GREP = 8,
        STUB_HAS_ALL = 15,
};

struct stub_meta {
        struct str ref;      /* "ctx_..." */
        struct str server;   /* may be empty */
        struct str tool;     /* its name; empty: the stub does not mention the tool */
        struct str call;     /* call id; empty: it is left out */
        enum stub_kind kind; /* the excerpt's figures may also make it STUB_BINARY */
        bool has_exit;
        int64_t exit_code;
        bool unfinished; /* the tool was killed, or is still running */
        uint32_t tools;  /* bits of enum stub_tools */
        /* For JSON: the document's shape (outline.h), whose lines end with line feeds; else
         * empty. */
        struct str outline;
};

/*
 * Appends the stub to `out`. The excerpt must be finished. 0 or STENO_ENOMEM.
 */
int stub_build(const struct excerpt *e, const struct stub_meta *meta, struct buf *out,
    struct steno_error *err);

/*
 * Builds the stub of the profile runtime-store: the first 500 characters, a blank line, and `[Full
 * output: <path>]`. `first` is the beginning of the output, at least 2,000 bytes of it if there are
 * as many. The preview is cut like a snippet. Bytes that are not UTF-8 become U+FFFD; the other
 * bytes are not changed. 0 or STENO_ENOMEM.
 */
int stub_build_runtime(struct str first, struct str path, struct buf *out, struct steno_error *err);

#endif
