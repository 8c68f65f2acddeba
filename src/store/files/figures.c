/* figures.c - see figures.h */
#include "store/files/figures.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/json.h"
#include "base/limits.h"

#define NAME "figures.json"
#define SIZE_MAX_BYTES (4 * KIB)

struct field {
        const char *name;
        size_t at;
};

static const struct field FIELDS[] = {
    {"materializations", offsetof(struct figures, materializations)},
    {"bytes", offsetof(struct figures, bytes)},
    {"chars", offsetof(struct figures, chars)},
    {"shownBytes", offsetof(struct figures, shown_bytes)},
    {"shownChars", offsetof(struct figures, shown_chars)},
    {"list", offsetof(struct figures, reads[0])},
    {"read", offsetof(struct figures, reads[1])},
    {"tail", offsetof(struct figures, reads[2])},
    {"grep", offsetof(struct figures, reads[3])},
};
#define FIELD_COUNT (sizeof FIELDS / sizeof *FIELDS)

static uint64_t *field_of(struct figures *f, size_t i)
{
        return (uint64_t *)((char *)f + FIELDS[i].at);
}

static void parse(const char *text, size_t n, struct figures *out)
{
        struct json j;
        *out = (struct figures){0};
        json_init(&j);
        if (json_parse(&j, text, n, NULL, NULL) == 0)
                for (size_t i = 0; i < FIELD_COUNT; i++)
                        json_u64(&j, json_get(&j, 0, FIELDS[i].name), field_of(out, i));
        json_release(&j);
}

void figures_add(struct files_store *store, const struct figures *more)
{
        const struct fs *fs = files_env(store)->fs;
        char text[SIZE_MAX_BYTES];
        struct figures f;
        struct buf out;
        int fd = fs->open(fs, files_root(store), NAME, O_RDWR | O_CREAT, 0600);
        if (fd < 0)
                return;
        buf_init(&out, SIZE_MAX_BYTES);
        ssize_t got = -1;
        if (fs->flock(fs, fd, LOCK_EX) == 0)
                got = fs_pread_all(fs, fd, text, sizeof text, 0);
        if (got >= 0) {
                struct jsonw w = jsonw_to(&out);
                parse(text, (size_t)got, &f);
                jsonw_object(&w);
                for (size_t i = 0; i < FIELD_COUNT; i++) {
                        jsonw_field_u64(&w, FIELDS[i].name,
                            *field_of(&f, i) + *field_of((struct figures *)more, i));
                }
                jsonw_object_end(&w);
                buf_putc(&out, '\n');
                if (!out.failed && fs_pwrite_all(fs, fd, out.p, out.n, 0) == 0)
                        fs->ftruncate(fs, fd, (off_t)out.n);
        }
        buf_release(&out);
        fs->close(fs, fd);
}

void figures_get(struct files_store *store, struct figures *out)
{
        const struct fs *fs = files_env(store)->fs;
        char *text = NULL;
        size_t n = 0;
        *out = (struct figures){0};
        if (fs_slurp(fs, files_root(store), NAME, SIZE_MAX_BYTES, &text, &n) == 0)
                parse(text, n, out);
        free(text);
}
