/*
 * purge.c - taking deleted bytes off the disk, and whole conversations out of the trash.
 */
#include "steno/store.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/purge.h"
#include "store/files/trash.h"

/* Every life of the id that is in the trash. */
static int purge_trash(struct steno_store *store, struct str project, const char *id,
    struct purge_result *out, struct steno_error *err)
{
        struct trash_list list;
        size_t found = 0;
        int rc = trash_list_read(store->files, true, &list, err);
        if (rc)
                return rc;
        for (size_t i = 0; rc == 0 && i < list.count; i++) {
                struct trash_item *it = &list.items[i];
                if (!trash_item_is(it, project, id))
                        continue;
                rc = trash_destroy(store->files, it, err);
                found++;
                out->bytes += rc ? 0 : it->bytes;
        }
        trash_list_release(&list);
        if (rc == 0 && !found)
                rc = error_set(err, STENO_ENOTFOUND,
                    "no conversation \"%.100s\" in project \"%.*s\", nor in the trash", id,
                    (int)(project.n > 60 ? 60 : project.n), project.p);
        return rc;
}

int steno_purge(struct steno_store *store, const char *project, const char *id, char **report,
    struct steno_error *err)
{
        struct str p;
        struct files_conv *conv;
        struct purge_result result = {0};
        int rc = store_project(project, &p, err);
        if (rc)
                return rc;
        rc = files_conv_open(store->files, p, str_of(id), &conv, err);
        if (rc == 0) {
                rc = purge_conv(conv, &result, err);
                files_conv_release(conv);
        } else if (rc == STENO_ENOTFOUND) {
                rc = purge_trash(store, p, id, &result, err);
        }
        if (rc || !report)
                return rc;
        struct buf b;
        buf_init(&b, 4 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "messages");
        jsonw_u64(&w, result.messages);
        jsonw_key(&w, "bytes");
        jsonw_u64(&w, result.bytes);
        jsonw_object_end(&w);
        char *text = buf_take(&b, NULL);
        buf_release(&b);
        if (!text)
                return error_nomem(err);
        *report = text;
        return 0;
}
