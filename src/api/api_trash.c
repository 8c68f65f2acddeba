/*
 * api_trash.c - removing conversations, bringing them back, and letting them go.
 */
#include "api/api_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

int steno_remove(struct steno_store *store, const char *project, const char *id, char **trash_id,
    struct steno_error *err)
{
        char name[TRASH_NAME];
        char *answer = NULL;
        struct str p;
        struct backend_conv *conv;
        int rc = api_store_project(project, &p, err);
        if (rc == 0)
                rc = backend_conv_open(store->backend, p, str_of(id), &conv, err);
        if (rc)
                return rc;
        if (trash_id && !(answer = malloc(sizeof name)))
                rc = error_nomem(err);
        if (rc == 0)
                rc = backend_trash_put(conv, name, err);
        backend_conv_release(conv);
        if (rc) {
                free(answer);
                return rc;
        }
        if (trash_id) {
                memcpy(answer, name, sizeof name);
                *trash_id = answer;
        }
        return 0;
}

int steno_trash_list(struct steno_store *store, char **json, struct steno_error *err)
{
        struct trash_list list;
        struct buf b;
        int rc = backend_trash_list(store->backend, true, &list, err);
        if (rc)
                return rc;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "items");
        jsonw_array(&w);
        for (size_t i = 0; i < list.count; i++) {
                jsonw_object(&w);
                jsonw_field_cstr(&w, "project", list.items[i].project);
                jsonw_field_cstr(&w, "id", list.items[i].id);
                jsonw_field_cstr(&w, "trashId", list.items[i].name);
                jsonw_field_cstr(&w, "deletedAt", list.items[i].deleted_at);
                jsonw_field_u64(&w, "bytes", list.items[i].bytes);
                jsonw_object_end(&w);
        }
        jsonw_array_end(&w);
        jsonw_object_end(&w);
        char *text = buf_take(&b, NULL);
        buf_release(&b);
        backend_trash_list_release(&list);
        if (!text)
                return error_nomem(err);
        *json = text;
        return 0;
}

int steno_trash_restore(struct steno_store *store, const char *project, const char *id,
    const char *as, struct steno_error *err)
{
        struct str p;
        struct trash_list list = {0};
        size_t i = 0;
        int rc = api_store_project(project, &p, err);
        if (rc == 0 && as)
                rc = api_conv_check_id(str_of(as), err);
        if (rc == 0)
                rc = backend_trash_list(store->backend, false, &list, err);
        if (rc)
                return rc;
        if (backend_trash_find(&list, p, id) == 0) {
                rc = error_set(
                    err, STENO_ENOTFOUND, "conversation \"%.100s\" is not in the trash", id);
        } else {
                while (!list.items[i].found)
                        i++;
                rc = backend_trash_put_back(store->backend, &list.items[i], as, err);
        }
        backend_trash_list_release(&list);
        return rc;
}

int steno_trash_empty(
    struct steno_store *store, unsigned days, uint64_t *count, struct steno_error *err)
{
        struct trash_list list;
        uint64_t gone = 0;
        int64_t before = store->env->now(store->env) - (int64_t)days * DAY_MS;
        int rc = backend_trash_sweep(store->backend, err);
        if (rc == 0)
                rc = backend_trash_list(store->backend, false, &list, err);
        if (rc)
                return rc;
        for (size_t i = 0; rc == 0 && i < list.count; i++) {
                int64_t at = 0;
                struct trash_item *it = &list.items[i];
                /* An entry without a readable time is removed only when everything is to be
                 * removed. */
                if (days &&
                    (!time_parse(it->deleted_at, strlen(it->deleted_at), &at) || at >= before))
                        continue;
                rc = backend_trash_destroy(store->backend, it, err);
                if (rc == 0)
                        rc = backend_search_forget(store->backend, it->project, it->id, err);
                if (rc == 0)
                        gone++;
                else if (rc == STENO_ENOTFOUND)
                        rc = 0;
        }
        backend_trash_list_release(&list);
        if (rc == 0 && gone)
                rc = api_seal_sign(store, NULL, err);
        if (rc == 0 && count)
                *count = gone;
        return rc;
}
