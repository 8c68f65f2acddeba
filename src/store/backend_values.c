/*
 * backend_values.c - values that all kinds of backends hand out: freeing them, finding something in
 * them, and reporting them.
 */
#include "store/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/limits.h"

void backend_receipt_release(struct backend_receipt *r, size_t count)
{
        if (!r->ids)
                return;
        for (size_t i = 0; i < count; i++)
                free(r->ids[i]);
        free(r->ids);
        r->ids = NULL;
}

void backend_run_state_release(struct run_state *s)
{
        free(s->head);
        free(s->last);
        *s = (struct run_state){0};
}

void backend_trash_list_release(struct trash_list *list)
{
        for (size_t i = 0; i < list->count; i++) {
                free(list->items[i].project);
                free(list->items[i].id);
        }
        free(list->items);
        *list = (struct trash_list){0};
}

/* Is this the folder of that id? */
static bool is_folder_of(const char *folder, struct str id)
{
        char name[PLAIN_NAME_MAX + 1];
        return id.n > 0 && id_file_name(id, name) == 0 && strcmp(name, folder) == 0;
}

static bool is_called(const struct trash_item *item, const char *id)
{
        return strcmp(item->id, id) == 0 || strcmp(item->folder, id) == 0 ||
               is_folder_of(item->folder, str_of(id));
}

size_t backend_trash_find(struct trash_list *list, struct str project, const char *id)
{
        size_t found = 0;
        for (int by_name = 0; by_name < 2 && !found; by_name++) {
                for (size_t i = 0; i < list->count; i++) {
                        struct trash_item *it = &list->items[i];
                        it->found = str_is(project, it->project) &&
                                    (by_name ? strcmp(it->name, id) == 0 : is_called(it, id));
                        found += it->found;
                }
        }
        return found;
}

void backend_seal_log_release(struct seal_log *log)
{
        free(log->text);
        free(log->leaves);
        free(log->entries);
        free(log->notes);
        *log = (struct seal_log){0};
}

int backend_seal_conv_name(struct str project, struct str id, struct str uid, char out[SEAL_CONV])
{
        struct sha256 s;
        unsigned char sum[SHA256_SIZE];
        if (hash_sha256_init(&s))
                return STENO_ENOMEM;
        hash_sha256_update(&s, project.p, project.n);
        hash_sha256_update(&s, "", 1);
        hash_sha256_update(&s, id.p, id.n);
        hash_sha256_update(&s, "", 1);
        hash_sha256_update(&s, uid.p, uid.n);
        hash_sha256_finish(&s, sum);
        hash_hex(sum, sizeof sum, out);
        return 0;
}

int backend_seal_tell(struct seal_check *k, struct seal_finding f, const char *fmt, ...)
{
        char what[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(what, sizeof what, fmt, args);
        va_end(args);
        f.what = what;
        return k->each(k->ctx, &f);
}

static bool is_safe(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
}

/* The id itself, then made safe with a hash, then numbered. */
int backend_artifact_name(struct str want, int n, char out[BACKEND_ARTIFACT_NAME])
{
        char hex[SHA256_HEX], safe[33];
        size_t k = 0;
        if (n == 0 && id_is_plain(want)) {
                snprintf(out, BACKEND_ARTIFACT_NAME, "%.*s", (int)want.n, want.p);
                return 0;
        }
        if (hash_sha256_hex(want.p, want.n, hex))
                return STENO_ENOMEM;
        for (; k < want.n && k < sizeof safe - 1; k++)
                safe[k] = is_safe(want.p[k]) ? want.p[k] : '_';
        safe[k] = '\0';
        if (n <= 1)
                snprintf(out, BACKEND_ARTIFACT_NAME, "%s-%.16s", safe, hex);
        else
                snprintf(out, BACKEND_ARTIFACT_NAME, "%s-%.16s-%d", safe, hex, n);
        return 0;
}
