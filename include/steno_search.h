/*
 * steno_search.h - words in messages, calls, results and outputs. Part of steno.h, which includes
 * it.
 */
#ifndef STENO_SEARCH_H
#define STENO_SEARCH_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

struct steno_search_options {
        size_t size;
        const char *query;
        const char *project;      /* NULL: of all */
        uint32_t limit;           /* 20 when 0, 200 at most */
        const char *cursor;       /* next_cursor of the page before */
        int catch_up_ms;          /* how long to index what is new before answering; 0: 2,000;
                                     negative: not at all, and `missing` is what the last catch-up of
                                     this handle left */
        const char *conversation; /* NULL: of all; a query that names another one is refused */
};

/*
 * Finds words in messages, calls, results and the text of outputs. A query has words, "phrases",
 * prefixes (wor*), -words that must not occur, /regular expressions/, and filters: role:user,
 * tool:NAME, project:P, conversation:ID, model:M, is:error, in:output, after:DATE, before:DATE. All
 * must hold within one block of up to 16 KB.
 *
 * {"items":[{"project","conversation","seq","id","role","at","tool"?,"ref"?,"line","offset",
 *  "snippet","matches":[[start,end],...]}],"next_cursor"?,"missing":n}: messages before outputs,
 * new ones first, and on each page those first that have all words on one line. `offset` is of the
 * text of the message or of the bytes of the output, `matches` of the snippet. `missing` counts
 * conversations that are not indexed yet, or not to their end: what is in them is not found.
 * "denied" is true where they cannot be, because the store may not be written to.
 * "partial" is true where an expression ran out of time; the cursor goes on. Else it is the number
 * of outputs that the question is about and that are indexed only at their beginning and end; it is
 * absent where there are none. "more" of an item is true where its message or output has further
 * matches.
 *
 * The index (search/ in the store) only proposes: every hit was read from the files. It can be
 * deleted at any time. Deleted and replaced messages are not found; a purge takes their words out
 * of the index before it returns.
 */
STENO_API int steno_search(struct steno_store *store, const struct steno_search_options *opt,
    char **json, struct steno_error *err);
/* Indexes what is new for about so many milliseconds; *left (may be NULL): how many conversations
 * remain. One at a time in all processes: when another does it, 0 is answered at once. */
STENO_API int steno_search_index(
    struct steno_store *store, int ms, uint64_t *left, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
