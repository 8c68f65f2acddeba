/*
 * api_stats.c - the figures of a store.
 */
#include "api/api_store.h"

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

static void put_u64(struct jsonw *w, const char *key, uint64_t v)
{
        jsonw_field_u64(w, key, v);
}

static uint64_t saved(uint64_t whole, uint64_t shown)
{
        return whole > shown ? whole - shown : 0;
}

static void put_outputs(struct jsonw *w, const struct figures *f)
{
        static const char *const READS[] = {"list", "read", "tail", "grep"};
        uint64_t bytes = saved(f->bytes, f->shown_bytes);
        jsonw_key(w, "outputs");
        jsonw_object(w);
        put_u64(w, "materializations", f->materializations);
        put_u64(w, "bytesSaved", bytes);
        put_u64(w, "charsSaved", saved(f->chars, f->shown_chars));
        put_u64(w, "averageSaved", f->materializations ? bytes / f->materializations : 0);
        jsonw_key(w, "reads");
        jsonw_object(w);
        for (size_t i = 0; i < 4; i++)
                put_u64(w, READS[i], f->reads[i]);
        jsonw_object_end(w);
        jsonw_object_end(w);
}

static void put_trash(struct jsonw *w, const struct trash_list *trash)
{
        uint64_t bytes = 0;
        for (size_t i = 0; i < trash->count; i++)
                bytes += trash->items[i].bytes;
        jsonw_key(w, "trash");
        jsonw_object(w);
        put_u64(w, "conversations", trash->count);
        put_u64(w, "bytes", bytes);
        jsonw_object_end(w);
}

int steno_stats(struct steno_store *store, char **json, struct steno_error *err)
{
        struct backend_totals totals = {0};
        struct backend_tally tally = {0};
        struct figures figures;
        struct trash_list trash = {0};
        struct buf b;
        int rc = api_store_catch_up(store, err);
        if (rc == 0)
                rc = backend_totals(store->backend, &totals, err);
        if (rc == STENO_ECORRUPT && (rc = api_store_catch_up(store, err)) == 0)
                rc = backend_totals(store->backend, &totals, err); /* it was made anew */
        if (rc == 0)
                rc = backend_tally(store->backend, &tally, err);
        if (rc == 0)
                rc = backend_trash_list(store->backend, true, &trash, err);
        if (rc)
                return rc;
        backend_figures_get(store->backend, &figures);
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        put_u64(&w, "conversations", totals.conversations);
        put_u64(&w, "messages", totals.messages);
        put_u64(&w, "bytes", totals.bytes);
        put_u64(&w, "artifacts", tally.artifacts);
        put_u64(&w, "artifactBytes", tally.artifact_bytes);
        put_trash(&w, &trash);
        put_u64(&w, "quarantine", tally.quarantine);
        put_outputs(&w, &figures);
        jsonw_object_end(&w);
        backend_trash_list_release(&trash);
        char *text = buf_take(&b, NULL);
        buf_release(&b);
        if (!text)
                return error_nomem(err);
        *json = text;
        return 0;
}
