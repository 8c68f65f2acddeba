/*
 * api_search_source.c - see api_search_source.h.
 *
 * Most hits of a page are of few conversations. What has to be found out about a conversation is
 * found out once for all of them that follow each other. Dead runs are not completed here: what
 * they left is not in the index yet.
 */
#include "api/api_search_source.h"

#include <stdlib.h>
#include <string.h>

#include "api/api_record_as.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "output/lines.h"

static void close_output(struct api_search_source *s)
{
        backend_reader_close(s->reader);
        s->reader = NULL;
}

static void close_conv(struct api_search_source *s)
{
        close_output(s);
        backend_lookup_close(s->lookup);
        s->lookup = NULL;
        steno_conv_close(s->conv);
        s->conv = NULL;
        s->amended_count = 0;
}

void api_search_source_release(struct api_search_source *s)
{
        close_conv(s);
        free(s->amended);
        s->amended = NULL;
        s->amended_cap = 0;
}

/* ---- what is shown ---- */

static int note_amended(void *ctx, const struct steno_record *r)
{
        struct api_search_source *s = ctx;
        const char *target = steno_record_target(r);
        if (!*target)
                return 0;
        if (!grow_room(s->amended, s->amended_count, s->amended_cap))
                return STENO_ENOMEM;
        s->amended[s->amended_count++] = hash_64(target, strlen(target));
        return 0;
}

static int by_number(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

struct hiding {
        const char *id;
        uint64_t seq;
        bool hidden;
};

/* Newest first: the first that is about the message decides. */
static int look_at_amendment(void *ctx, const struct steno_record *r)
{
        struct hiding *h = ctx;
        if (strcmp(steno_record_target(r), h->id) != 0)
                return 0;
        const char *kind = steno_record_kind(r);
        if (strcmp(kind, "delete") == 0)
                h->hidden = true;
        else if (strcmp(kind, "supersede") == 0)
                h->hidden = steno_record_seq(r) != h->seq;
        else
                return 0;
        return 1;
}

bool api_search_source_hides(struct api_search_source *s, const char *id, uint64_t seq)
{
        uint64_t hash = hash_64(id, strlen(id));
        struct hiding h = {.id = id, .seq = seq};
        if (!s->amended_count ||
            !bsearch(&hash, s->amended, s->amended_count, sizeof hash, by_number))
                return false;
        int rc = steno_read_amendments(s->conv, look_at_amendment, &h, NULL);
        return rc < 0 || h.hidden;
}

/* ---- the conversation ---- */

int api_search_source_open(struct api_search_source *s, const char *project, const char *id)
{
        struct backend_conv *backend;
        if (s->conv && strcmp(steno_conv_id(s->conv), id) == 0 &&
            strcmp(steno_conv_project(s->conv), project) == 0)
                return 0;
        close_conv(s);
        int rc = backend_conv_open(s->store->backend, str_of(project), str_of(id), &backend, NULL);
        if (rc == 0)
                rc = api_conv_wrap(s->store, backend, &s->conv, NULL);
        if (rc == 0)
                rc = backend_lookup_open(s->conv->backend, &s->lookup, NULL);
        /* Behind the lookup, so that an amendment of any record in it is known. */
        if (rc == 0)
                rc = steno_read_amendments(s->conv, note_amended, s, NULL);
        if (rc < 0) {
                close_conv(s);
                return rc;
        }
        if (s->amended_count)
                qsort(s->amended, s->amended_count, sizeof *s->amended, by_number);
        return 0;
}

int api_search_source_record(struct api_search_source *s, uint64_t seq, steno_record_fn each,
    void *ctx, struct steno_error *err)
{
        return api_record_lookup(s->conv, s->lookup, seq, each, ctx, err);
}

/* ---- outputs ---- */

int api_search_source_output(struct api_search_source *s, const char *ref)
{
        if (s->reader && strcmp(s->output.id, ref) == 0)
                return 0;
        close_output(s);
        int rc = backend_artifact_find(s->conv->backend, str_of(ref), &s->output, NULL);
        if (rc == 0 && s->output.state != ARTIFACT_CLOSED)
                rc = STENO_ENOTFOUND;
        if (rc == 0)
                rc = backend_artifact_open(
                    s->conv->backend, &s->output, &s->reader, &s->output_size, NULL);
        return rc;
}

static int read_opened(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        ssize_t got = backend_reader_read(ctx, at, p, n, err);
        return got == (ssize_t)n ? 0
               : got < 0         ? (int)got
                                 : error_set(err, STENO_EIO, "it is cut off");
}

/* The output's index of lines, which saves reading all of it. NULL: there is none. *bytes is freed
 * by the caller. */
static const struct lines_index *lines_of(
    struct api_search_source *s, struct lines_index *x, char **bytes)
{
        size_t n = 0;
        *bytes = NULL;
        if (backend_artifact_lines(s->conv->backend, &s->output, bytes, &n, NULL))
                n = 0;
        return n && lines_index_open(x, *bytes, n, s->output_size) ? x : NULL;
}

uint64_t api_search_source_feeds(struct api_search_source *s, uint64_t at)
{
        struct lines_index x;
        struct lines_file file = {read_opened, s->reader, s->output_size};
        char *bytes;
        uint64_t line = 1;
        lines_at(
            &file, lines_of(s, &x, &bytes), at < s->output_size ? at : s->output_size, &line, NULL);
        free(bytes);
        return line - 1;
}

bool api_search_source_line(struct api_search_source *s, uint64_t line, uint64_t *at)
{
        struct lines_index x;
        struct lines_file file = {read_opened, s->reader, s->output_size};
        char *bytes;
        bool found;
        int rc = lines_seek(&file, lines_of(s, &x, &bytes), line, at, &found, NULL);
        free(bytes);
        return rc == 0 && found;
}
