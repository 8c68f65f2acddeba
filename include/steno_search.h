/*
 * steno_search.h - full-text search in messages, calls, results and outputs. Part of steno.h, which
 * includes it.
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
        int catch_up_ms;          /* how long to index new records before answering; 0: 2,000;
                                     negative: no indexing, and `missing` is the number that this
                                     handle's last indexing left */
        const char *conversation; /* NULL: all; a query that names another one is refused */
};

/*
 * Finds words in messages, calls, results and the text of outputs. A query has words, "phrases",
 * prefixes (wor*), -words that must not occur, /regular expressions/, and filters: role:user,
 * tool:NAME, project:P, conversation:ID, model:M, is:error, in:output, after:DATE, before:DATE. One
 * block of up to 16 KB must match all of them.
 *
 * {"items":[{"project","conversation","seq","id","role","at","tool"?,"ref"?,"line","offset",
 *  "snippet","matches":[[start,end],...]}],"next_cursor"?,"missing":n}
 * Messages come before outputs, and newer ones first; on each page, items with all words on one
 * line come first. `offset` counts from the beginning of the message's text or of the output's
 * bytes, `matches` from the beginning of the snippet. `missing` counts conversations that are not
 * indexed, or not to their end: the search does not see the rest. "denied" is true where they
 * cannot be indexed, because the store may not be written to. "partial" is true where a regular
 * expression ran out of time; the cursor continues from there. Otherwise "partial" is the number of
 * outputs covered by the query that are indexed only at their beginning and end; it is absent where
 * there are none. "more" of an item is true where its message or output has further matches.
 *
 * The index (search/ in the store) only proposes hits: each one is checked against the files. It
 * can be deleted at any time. Deleted and replaced messages are not found; a purge removes their
 * words from the index before it returns.
 */
STENO_API int steno_search(struct steno_store *store, const struct steno_search_options *opt,
    char **json, struct steno_error *err);
/* Indexes new records for about `ms` milliseconds; *left (may be NULL): how many conversations
 * remain. Only one process indexes at a time: while another one does, the call returns 0 at
 * once. */
STENO_API int steno_search_index(
    struct steno_store *store, int ms, uint64_t *left, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
