/*
 * api_search_source.h - the conversation that hits of a search are of, open for as long as they
 * follow each other: its records, which of them are shown, and its outputs.
 */
#ifndef API_API_SEARCH_SOURCE_H
#define API_API_SEARCH_SOURCE_H

#include "api/api_store.h"
#include "store/backend.h"

struct api_search_source {
        struct steno_store *store;
        struct steno_conv *conv; /* NULL: none yet */
        struct backend_lookup *lookup;
        /* What amendments are about: hashes of ids, sorted. An id that is not among them is shown
         * as it is; of one that is, the amendments themselves are asked. */
        uint64_t *amended;
        size_t amended_count;
        size_t amended_cap;
        /* The output that was opened last. */
        struct artifact_info output;
        struct backend_reader *reader; /* NULL: none */
        uint64_t output_size;
};

/* Goes on with this conversation. An error: it is gone, or cannot be read. */
int api_search_source_open(struct api_search_source *s, const char *project, const char *id);
void api_search_source_release(struct api_search_source *s);

/* As backend_lookup_record. */
int api_search_source_record(struct api_search_source *s, uint64_t seq, steno_record_fn each,
    void *ctx, struct steno_error *err);
/* Is the message with this id, as the record `seq` has it, deleted or replaced? */
bool api_search_source_hides(struct api_search_source *s, const char *id, uint64_t seq);
/* Opens an output that is complete: s->output, s->reader and s->output_size are of it. */
int api_search_source_output(struct api_search_source *s, const char *ref);
/* Line feeds before byte `at` of the output that is open. */
uint64_t api_search_source_feeds(struct api_search_source *s, uint64_t at);
/* Where a line of it begins. False: that cannot be read. */
bool api_search_source_line(struct api_search_source *s, uint64_t line, uint64_t *at);

#endif
