/* receipt.c - see receipt.h */
#include "api/receipt.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

struct steno_receipt {
        uint64_t first_seq;
        uint64_t last_seq;
        int durability;
        bool replayed;
        size_t count;
        char **ids;
        struct buf calls; /* JSON objects with commas between them */
        struct buf json;
};

static int write_json(struct steno_receipt *r, const char *conversation, struct steno_error *err)
{
        buf_clear(&r->json);
        struct jsonw w = jsonw_to(&r->json);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "conversation", conversation);
        jsonw_field_u64(&w, "first_seq", r->first_seq);
        jsonw_field_u64(&w, "last_seq", r->last_seq);
        jsonw_key(&w, "ids");
        jsonw_array(&w);
        for (size_t i = 0; i < r->count; i++)
                jsonw_cstr(&w, r->ids[i]);
        jsonw_array_end(&w);
        jsonw_field_cstr(&w, "durability", r->durability == STENO_FULL ? "full" : "process");
        if (r->calls.n) {
                jsonw_key(&w, "calls");
                jsonw_array(&w);
                jsonw_raw(&w, buf_str(&r->calls));
                jsonw_array_end(&w);
        }
        jsonw_object_end(&w);
        return buf_cstr(&r->json) && !r->calls.failed ? 0 : error_nomem(err);
}

void receipt_note_calls(struct steno_receipt *r, size_t i, const struct about *about)
{
        if (!about->call_count || i >= r->count)
                return;
        if (r->calls.n)
                buf_putc(&r->calls, ',');
        struct jsonw w = jsonw_to(&r->calls);
        jsonw_object(&w);
        jsonw_field_u64(&w, "message", i);
        jsonw_key(&w, "ids");
        jsonw_array(&w);
        for (size_t k = 0; k < about->call_count; k++)
                jsonw_str(&w, about->calls[k]);
        jsonw_array_end(&w);
        jsonw_object_end(&w);
}

void receipt_forget_calls(struct steno_receipt *r)
{
        buf_clear(&r->calls);
}

int receipt_new(const char *conversation, const struct backend_batch *batch,
    struct steno_receipt **out, struct steno_error *err)
{
        struct steno_receipt *r = calloc(1, sizeof *r);
        if (!r)
                return error_nomem(err);
        /* No seq and no durability is longer than these. */
        *r = (struct steno_receipt){.first_seq = UINT64_MAX,
            .last_seq = UINT64_MAX,
            .durability = STENO_PROCESS,
            .count = batch->count};
        buf_init(&r->json, 0);
        buf_init(&r->calls, 0);
        r->ids = calloc(r->count, sizeof *r->ids);
        if (!r->ids)
                goto fail;
        for (size_t i = 0; i < r->count; i++) {
                struct str id = batch->entries[i].id;
                r->ids[i] = strndup(id.p, id.n);
                if (!r->ids[i])
                        goto fail;
                if (batch->entries[i].about.no_id)
                        receipt_note_calls(r, i, &batch->entries[i].about);
        }
        if (write_json(r, conversation, err))
                goto fail;
        *out = r;
        return 0;
fail:
        steno_receipt_free(r);
        return error_nomem(err);
}

static void free_ids(struct steno_receipt *r)
{
        for (size_t i = 0; r->ids && i < r->count; i++)
                free(r->ids[i]);
        free(r->ids);
}

int receipt_fill(struct steno_receipt *r, const char *conversation, struct backend_receipt *from,
    struct steno_error *err)
{
        r->first_seq = from->first_seq;
        r->last_seq = from->last_seq;
        r->durability = from->durability;
        r->replayed = from->replayed;
        if (from->ids) {
                free_ids(r);
                r->ids = from->ids;
                from->ids = NULL;
        }
        return write_json(r, conversation, err);
}

void steno_receipt_free(struct steno_receipt *r)
{
        if (!r)
                return;
        free_ids(r);
        buf_release(&r->calls);
        buf_release(&r->json);
        free(r);
}

uint64_t steno_receipt_first_seq(const struct steno_receipt *r)
{
        return r->first_seq;
}

uint64_t steno_receipt_last_seq(const struct steno_receipt *r)
{
        return r->last_seq;
}

size_t steno_receipt_count(const struct steno_receipt *r)
{
        return r->count;
}

const char *steno_receipt_id(const struct steno_receipt *r, size_t i)
{
        return i < r->count ? r->ids[i] : NULL;
}

int steno_receipt_durability(const struct steno_receipt *r)
{
        return r->durability;
}

bool steno_receipt_replayed(const struct steno_receipt *r)
{
        return r->replayed;
}

const char *steno_receipt_json(const struct steno_receipt *r)
{
        return r->json.p;
}
