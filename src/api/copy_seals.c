/* copy_seals.c - see copy_seals.h */
#include "api/copy_seals.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"

#define TEXT_MAX ((size_t)GIB)
#define PATIENCE_MS 10000

/* In the order in which they are read: a signed note is never about more than the log that is read
 * after it. They are written the other way round. */
static const char *const PARTS[] = {"seal/checkpoints", "seal/names.jsonl", "seal/log.jsonl"};
#define PART_COUNT (sizeof PARTS / sizeof *PARTS)

struct part {
        char *text;
        size_t n;
};

static int read_part(
    struct backend_store *store, const char *name, struct part *out, struct steno_error *err)
{
        int rc = backend_document_read(store, name, TEXT_MAX, &out->text, &out->n, NULL, err);
        return rc == STENO_ENOTFOUND ? 0 : rc;
}

static int put(void *ctx, struct str old, struct buf *out, struct steno_error *err)
{
        const struct part *p = ctx;
        (void)old, (void)err;
        buf_put(out, p->text, p->n);
        return 0;
}

int copy_seals(struct backend_store *from, struct backend_store *to, struct steno_error *err)
{
        struct part parts[PART_COUNT] = {{0}}, there = {0};
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < PART_COUNT; i++)
                rc = read_part(from, PARTS[i], &parts[i], err);
        if (rc == 0)
                rc = read_part(to, PARTS[PART_COUNT - 1], &there, err);
        bool ours = rc == 0 && there.n == 0;
        for (size_t i = PART_COUNT; rc == 0 && ours && i-- > 0;)
                if (parts[i].n)
                        rc = backend_document_change(
                            to, PARTS[i], TEXT_MAX, PATIENCE_MS, put, &parts[i], err);
        for (size_t i = 0; i < PART_COUNT; i++)
                free(parts[i].text);
        free(there.text);
        return rc;
}
