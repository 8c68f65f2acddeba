/* seal_verify_outputs.c - outputs and parts of sealed records (seal_verify.h) */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "store/files/artifact.h"
#include "store/files/conv.h"
#include "store/files/seal_verify.h"

#define BLOCK ((size_t)64 * 1024)

static int add_named(struct seal_named *n, struct str ref, struct steno_error *err)
{
        if (!grow_room(n->list, n->count, n->cap))
                return error_nomem(err);
        n->list[n->count] = arena_dup(&n->arena, ref);
        return n->list[n->count++].p ? 0 : error_nomem(err);
}

/* The SHA-256 of an output's bytes as they are; "": it cannot be read. */
static int hash_output(struct files_conv *c, const struct artifact_info *info, char hex[SHA256_HEX])
{
        const struct fs *fs = c->store->env->fs;
        unsigned char sum[SHA256_SIZE];
        struct sha256 sha;
        uint64_t size, at = 0;
        ssize_t got = 0;
        int fd = -1;
        hex[0] = '\0';
        int rc = artifact_open(c, info, &fd, &size, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? rc : 0;
        char *block = malloc(BLOCK);
        if (!block || hash_sha256_init(&sha)) {
                free(block);
                fs->close(fs, fd);
                return STENO_ENOMEM;
        }
        while ((got = fs_pread_all(fs, fd, block, BLOCK, (off_t)at)) > 0) {
                hash_sha256_update(&sha, block, (size_t)got);
                at += (uint64_t)got;
        }
        hash_sha256_finish(&sha, sum);
        if (got == 0)
                hash_hex(sum, sizeof sum, hex);
        free(block);
        fs->close(fs, fd);
        return 0;
}

static int check_output(struct files_conv *c, uint64_t seq, struct str ref, struct str sha,
    struct seal_check *k, struct steno_error *err)
{
        struct artifact_info info;
        char hex[SHA256_HEX], id[41];
        snprintf(id, sizeof id, "%.*s", (int)(ref.n < 40 ? ref.n : 40), ref.p);
        struct seal_finding f = {.kind = "output", .seq = seq, .ref = id};
        int rc = artifact_find(c, ref, &info, NULL);
        if (rc == STENO_ENOMEM)
                return error_nomem(err);
        if (rc)
                return backend_seal_tell(k, f, "output %s is missing", id);
        if (info.state == ARTIFACT_DELETED)
                return backend_seal_tell(k, f, "output %s was removed (%s)", id, info.deleted_by);
        if (!sha.n) {
                f.kind = "uncovered";
                f.note = true;
                return backend_seal_tell(k, f,
                    "output %s was not finished when its record was written: not covered", id);
        }
        rc = hash_output(c, &info, hex);
        if (rc)
                return error_nomem(err);
        k->outputs++;
        if (!hex[0])
                return backend_seal_tell(k, f, "the bytes of output %s are missing", id);
        return str_is(sha, hex) ? 0 : backend_seal_tell(k, f, "output %s was changed", id);
}

static struct str sum_of(const struct about *about, size_t slot)
{
        const struct about_out *o = about_out_at(about, slot);
        if (o)
                return o->ref_sha;
        if (slot == 0)
                return about->ref_sha;
        return slot <= about->ref_count && about->ref_shas ? about->ref_shas[slot - 1]
                                                           : (struct str){0};
}

static int check_part(struct files_conv *c, uint64_t seq, struct about_part part,
    struct seal_check *k, struct steno_error *err)
{
        struct seal_finding f = {.kind = "output", .seq = seq};
        int rc = part_get(c, part.name, part.size, NULL, NULL, NULL);
        if (rc == STENO_ENOMEM)
                return error_nomem(err);
        return rc ? backend_seal_tell(k, f,
                        "a large string of its message (part %.16s...) was changed "
                        "or removed",
                        part.name.n >= 16 ? part.name.p : "?")
                  : 0;
}

int seal_verify_outputs(struct files_conv *c, const struct record *rec, bool covered,
    struct seal_named *named, struct seal_check *k, struct steno_error *err)
{
        struct arena arena;
        struct about about;
        if (!memmem(rec->x.p, rec->x.n, "\"ref", 4) && !memmem(rec->x.p, rec->x.n, "\"outs\"", 6) &&
            !memmem(rec->x.p, rec->x.n, "\"parts\"", 7))
                return 0;
        arena_init(&arena);
        int rc = about_read(rec->x, &arena, &about, NULL);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        bool there = rc == 0 && !str_is(about.kind, "tombstone");
        for (size_t i = 0; rc == 0 && i < about_ref_slots(&about); i++) {
                struct str ref = about_ref_at(&about, i);
                if (!ref.n)
                        continue;
                rc = add_named(named, ref, err);
                if (rc == 0 && there && covered)
                        rc = check_output(c, rec->seq, ref, sum_of(&about, i), k, err);
        }
        for (size_t i = 0; rc == 0 && there && covered && i < about_part_slots(&about); i++)
                if (about_part_at(&about, i).name.n)
                        rc = check_part(c, rec->seq, about_part_at(&about, i), k, err);
        arena_release(&arena);
        return rc == STENO_ECORRUPT ? 0 : rc; /* what cannot be understood names nothing */
}

/* ---- strays ---- */

static int by_text(const void *a, const void *b)
{
        const struct str *x = a, *y = b;
        int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
        return order ? order : (x->n > y->n) - (x->n < y->n);
}

struct strays {
        const struct seal_named *named;
        struct seal_check *check;
};

static int look_at_stray(void *ctx, const struct artifact_info *info)
{
        struct strays *s = ctx;
        struct str id = str_of(info->id);
        if (info->state == ARTIFACT_DELETED ||
            (s->named->count && bsearch(&id, s->named->list, s->named->count, sizeof id, by_text)))
                return 0;
        struct seal_finding f = {.kind = "uncovered", .note = true, .ref = info->id};
        return backend_seal_tell(s->check, f,
            "output %s (%s) is named by no record, so nothing says whether it was added", info->id,
            info->name);
}

int seal_verify_strays(
    struct files_conv *c, struct seal_named *named, struct seal_check *k, struct steno_error *err)
{
        struct strays s = {named, k};
        struct stat st;
        const struct fs *fs = c->store->env->fs;
        if (named->count)
                qsort(named->list, named->count, sizeof *named->list, by_text);
        if (fs->stat(fs, c->dir, "artifacts", &st) == -ENOENT)
                return 0;
        return artifact_each(c, look_at_stray, &s, err);
}
