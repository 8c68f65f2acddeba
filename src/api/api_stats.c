/*
 * own_stats.c - the figures of a store. Conversations come from the index; artifacts and the trash
 * are looked at where they are.
 */
#include "api/api_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/figures.h"
#include "store/files/trash.h"

struct tally {
        const struct fs *fs;
        int root;
        int dir; /* the folder being listed */
        uint64_t count;
        uint64_t bytes;
};

static int tally_file(void *ctx, const char *name, unsigned char type)
{
        struct tally *t = ctx;
        struct stat st;
        (void)type;
        if (name[0] != '.' && t->fs->stat(t->fs, t->dir, name, &st) == 0 && S_ISREG(st.st_mode)) {
                t->count++;
                t->bytes += (uint64_t)st.st_size;
        }
        return 0;
}

static int tally_conv(void *ctx, const char *project_folder, const char *folder, bool link)
{
        static const char *const KINDS[] = {"tool", "terminal", "parts"};
        struct tally *t = ctx;
        char path[256];
        if (link)
                return 0;
        for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
                snprintf(path, sizeof path, "projects/%s/conversations/%s/artifacts/%s",
                    project_folder, folder, KINDS[i]);
                t->dir = t->fs->open(t->fs, t->root, path, O_RDONLY | O_DIRECTORY, 0);
                if (t->dir < 0)
                        continue;
                t->fs->list(t->fs, t->dir, tally_file, t);
                t->fs->close(t->fs, t->dir);
        }
        return 0;
}

/* Things in the quarantine: each is bytes and a note. */
static uint64_t count_quarantine(struct tally *t)
{
        struct tally q = {.fs = t->fs};
        q.dir = t->fs->open(t->fs, t->root, "quarantine", O_RDONLY | O_DIRECTORY, 0);
        if (q.dir < 0)
                return 0;
        t->fs->list(t->fs, q.dir, tally_file, &q);
        t->fs->close(t->fs, q.dir);
        return (q.count + 1) / 2;
}

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
        struct index *index;
        struct index_totals totals = {0};
        struct figures figures;
        struct trash_list trash = {0};
        struct tally t = {.fs = store->env->fs, .root = files_root(store->files)};
        struct buf b;
        int rc = api_store_index(store, &index, err);
        if (rc == 0)
                rc = index_totals(index, &totals, err);
        if (rc == STENO_ECORRUPT && (rc = api_store_index(store, &index, err)) == 0)
                rc = index_totals(index, &totals, err); /* it was made anew */
        if (rc == 0)
                rc = files_each_conv(store->files, tally_conv, &t, err);
        if (rc == 0)
                rc = trash_list_read(store->files, true, &trash, err);
        if (rc)
                return rc;
        figures_get(store->files, &figures);
        buf_init(&b, 64 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        put_u64(&w, "conversations", totals.conversations);
        put_u64(&w, "messages", totals.messages);
        put_u64(&w, "bytes", totals.bytes);
        put_u64(&w, "artifacts", t.count);
        put_u64(&w, "artifactBytes", t.bytes);
        put_trash(&w, &trash);
        put_u64(&w, "quarantine", count_quarantine(&t));
        put_outputs(&w, &figures);
        jsonw_object_end(&w);
        trash_list_release(&trash);
        char *text = buf_take(&b, NULL);
        buf_release(&b);
        if (!text)
                return error_nomem(err);
        *json = text;
        return 0;
}
