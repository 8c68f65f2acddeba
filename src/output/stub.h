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
 *   2. A stub is smaller than half of what it replaces. To get there, snippets shrink, the tail
 *      last; then come forms without snippets, down to one line. Outputs of less than about 200
 *      bytes, which no policy replaces, are an exception: they may get that line although it is
 *      larger.
 *   3. The frame cannot be closed from inside: a line of the output that could be taken for one
 *      of ours gets a backslash before it (clean.h), and names from outside are quoted unless
 *      they are plain.
 *   4. Only tools that the model has are named.
 *   5. Valid UTF-8, no control characters but line feed and tab.
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

/* No stub is larger than this with default excerpt options; policy_is_stub relies on it. */
#define STUB_MAX 12288

enum stub_kind {
        STUB_TEXT,
        STUB_JSON,
        STUB_BINARY,
};

/* Tools the model really has. */
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
        struct str tool;     /* its name; empty: nothing is said about it */
        struct str call;     /* call id; may be empty: then it is left out */
        enum stub_kind kind; /* STUB_BINARY is also taken when the excerpt's figures say so */
        bool has_exit;
        int64_t exit_code;
        bool unfinished; /* the tool was killed or still runs */
        uint32_t tools;  /* enum stub_tools */
        /* JSON: the document's shape (outline.h), lines ending with line feeds; else empty. */
        struct str outline;
};

/*
 * Appends the stub to `out`. The excerpt is finished. 0 or STENO_ENOMEM.
 */
int stub_build(const struct excerpt *e, const struct stub_meta *meta, struct buf *out,
    struct steno_error *err);

/*
 * The profile runtime-store: the first 500 characters, a blank line, and `[Full output: <path>]`.
 * `first` is the beginning of the output, at least 2,000 bytes of it when there are as many. The
 * preview is cut like a snippet. Its bytes are not changed, except that bytes that are not UTF-8
 * become U+FFFD. 0 or STENO_ENOMEM.
 */
int stub_build_runtime(struct str first, struct str path, struct buf *out, struct steno_error *err);

#endif
