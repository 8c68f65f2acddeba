/*
 * api_purge.c - removes deleted bytes from the disk, and whole conversations from the trash.
 */
#include "api/api_recover.h"
#include "api/api_store.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

struct purging {
        struct purge_result result;
        struct buf removed; /* trash ids, as JSON */
        struct jsonw list;
};

/* Every life of the id that is in the trash, or one by its trash id. */
static int purge_trash(struct steno_store *store, struct str project, const char *id,
    struct purging *out, struct steno_error *err)
{
        struct trash_list list;
        int rc = backend_trash_list(store->backend, true, &list, err);
        if (rc)
                return rc;
        if (backend_trash_find(&list, project, id) == 0)
                rc = error_set(err, STENO_ENOTFOUND,
                    "no conversation \"%.100s\" in project \"%.*s\", nor in the trash", id,
                    (int)(project.n > 60 ? 60 : project.n), project.p);
        for (size_t i = 0; rc == 0 && i < list.count; i++) {
                struct trash_item *it = &list.items[i];
                if (!it->found)
                        continue;
                rc = backend_trash_destroy(store->backend, it, err);
                if (rc == 0)
                        rc = backend_search_forget(store->backend, it->project, it->id, err);
                if (rc == 0) {
                        out->result.bytes += it->bytes;
                        jsonw_cstr(&out->list, it->name);
                }
        }
        backend_trash_list_release(&list);
        return rc ? rc : api_seal_sign(store, NULL, err);
}

static int purge(struct steno_store *store, struct str project, const char *id, struct purging *out,
    struct steno_error *err)
{
        struct backend_conv *conv;
        int rc = backend_conv_open(store->backend, project, str_of(id), &conv, err);
        if (rc == STENO_ENOTFOUND)
                return purge_trash(store, project, id, out, err);
        if (rc)
                return rc;
        struct steno_conv *whole;
        rc = api_conv_wrap(store, conv, &whole, err);
        if (rc)
                return rc;
        /* Until a dead run is completed, its journal still has the text of its messages. */
        rc = api_recover(whole, err);
        if (rc == 0)
                rc = backend_purge(whole->backend, &out->result, err);
        if (rc == 0 && (out->result.messages || out->result.bytes))
                rc = backend_search_forget(
                    store->backend, steno_conv_project(whole), steno_conv_id(whole), err);
        if (rc == 0 && out->result.messages)
                rc = api_seal_sign(store, whole->backend, err);
        steno_conv_close(whole);
        return rc;
}

int steno_purge(struct steno_store *store, const char *project, const char *id, char **report,
    struct steno_error *err)
{
        struct str p;
        struct buf b;
        int rc = api_store_project(project, &p, err);
        if (rc)
                return rc;
        struct purging out = {0};
        buf_init(&out.removed, 0);
        out.list = jsonw_to(&out.removed);
        jsonw_array(&out.list);
        rc = purge(store, p, id, &out, err);
        jsonw_array_end(&out.list);
        if (rc == 0 && report) {
                buf_init(&b, 0);
                struct jsonw w = jsonw_to(&b);
                jsonw_object(&w);
                jsonw_field_u64(&w, "messages", out.result.messages);
                jsonw_field_u64(&w, "bytes", out.result.bytes);
                if (out.result.damaged) {
                        jsonw_field_u64(&w, "damaged", out.result.damaged);
                }
                jsonw_field_raw(&w, "removed", buf_str(&out.removed));
                jsonw_object_end(&w);
                char *text = out.removed.failed ? NULL : buf_take(&b, NULL);
                buf_release(&b);
                if (text)
                        *report = text;
                else
                        rc = error_nomem(err);
        }
        buf_release(&out.removed);
        return rc;
}
