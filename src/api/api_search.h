/*
 * api_search.h - the text of a record as search sees it; used for indexing and for queries.
 */
#ifndef API_API_SEARCH_H
#define API_API_SEARCH_H

#include "api/api_store.h"
#include "base/buf.h"

/* Of an output so much is indexed at its beginning and at its end. */
#define API_SEARCH_OUTPUT_MAX ((uint64_t)64 * 1024 * 1024)
/* An output of which the middle is left out has an empty block with this word. No text has it, for
 * it is longer than any word that is indexed. */
#define API_SEARCH_IN_PART                                                                         \
        "indexed_in_part_indexed_in_part_indexed_in_part_indexed_in_part_indexed_in_part"

struct api_search_text {
        struct buf text; /* what it says, calls and returns, in lines */
        char role[16];
        char tools[512]; /* names of the tools that it calls, or whose results it has: each once,
                            with line ends between them */
        char model[128];
        bool error;
        bool message; /* else an amendment, or damaged: there is no text */
        /* Ids and names of the calls that were read so far, each with its NUL, or NULL: results of
         * most formats name no tool. */
        struct buf *calls;
        bool unnamed; /* it has a result of a call that is not among them */
        /* Whose call or result has byte `want` of the text; "" where nobody's has. */
        size_t want;
        char here[128];
};

/* Fills `t`, whose buffer is initialised. 0 or STENO_ENOMEM; what cannot be read has no text. */
int api_search_read(
    const struct steno_record *r, struct api_search_text *t, struct steno_error *err);

/* Is it one of the names in `tools`? */
bool api_search_has_tool(const char *tools, struct str name);

/* Calls `each` with every ref of the record's about object, until it returns another number than 0,
 * which is returned. */
int api_search_each_ref(
    const struct steno_record *r, int (*each)(void *ctx, struct str ref), void *ctx);

#endif
