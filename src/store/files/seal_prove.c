/* seal_prove.c - see seal_prove.h */
#include "store/files/seal_prove.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"

struct proving {
        uint64_t seq;
        struct merkle tree;
        struct buf c; /* the record */
        struct merkle_hash leaf;
        bool found;
        bool purged;
        bool failed;
};

static int take(void *ctx, const struct backend_record *r)
{
        struct proving *p = ctx;
        struct buf scratch;
        if (r->damaged || r->rec.seq != p->seq)
                return 1;
        buf_init(&scratch, 0);
        p->found = true;
        p->purged = leaf_said(r->rec.x, &p->leaf);
        if (!p->purged) {
                leaf_put(&p->c, &r->rec);
                p->failed = !leaf_of_own(&p->tree, &r->rec, &scratch, &p->leaf) || p->c.failed;
        }
        buf_release(&scratch);
        return 1;
}

static void put_proof(struct buf *out, struct proving *p, const struct note *note,
    const struct merkle_hash *path, unsigned count)
{
        struct jsonw w = jsonw_to(out);
        struct buf coded;
        char hex[SHA256_HEX];
        buf_init(&coded, 0);
        jsonw_object(&w);
        if (p->purged) {
                hash_hex(p->leaf.b, sizeof p->leaf.b, hex);
                jsonw_field_null(&w, "record");
                jsonw_field_cstr(&w, "leaf", hex);
        } else {
                jsonw_field_str(&w, "record", buf_str(&p->c));
        }
        jsonw_field_u64(&w, "index", p->seq - 1);
        jsonw_field_u64(&w, "size", note->size);
        jsonw_key(&w, "hashes");
        jsonw_array(&w);
        for (unsigned i = 0; i < count; i++) {
                buf_clear(&coded);
                base64_put(&coded, path[i].b, sizeof path[i].b);
                jsonw_str(&w, buf_str(&coded));
        }
        jsonw_array_end(&w);
        jsonw_field_str(&w, "checkpoint",
            str_span(
                note->text.p, (size_t)(note->signatures.p + note->signatures.n - note->text.p)));
        jsonw_object_end(&w);
        buf_release(&coded);
}

static int prove(struct files_conv *conv, struct proving *p, const struct note *note,
    struct buf *out, struct steno_error *err)
{
        struct merkle_hash path[MERKLE_DEPTH], root, *leaves = NULL;
        uint64_t have = 0;
        if (p->seq == 0 || p->seq > note->size)
                return error_set(err, STENO_ENOTFOUND, "record %llu is not sealed: %llu are",
                    (unsigned long long)p->seq, (unsigned long long)note->size);
        int rc = files_read(conv, p->seq - 1, take, p, err);
        if (rc < 0)
                return rc;
        if (p->failed)
                return error_nomem(err);
        rc = p->found ? seal_read_leaves(conv, note->size, &leaves, &have, err)
                      : error_set(err, STENO_ECORRUPT, "record %llu cannot be read",
                            (unsigned long long)p->seq);
        if (rc)
                return rc;
        unsigned count =
            have == note->size ? merkle_path(&p->tree, leaves, have, p->seq - 1, path) : 0;
        bool right = have == note->size && merkle_same(&leaves[p->seq - 1], &p->leaf) &&
                     merkle_climb(&p->tree, &p->leaf, p->seq - 1, have, path, count, &root) &&
                     merkle_same(&root, &note->root);
        free(leaves);
        if (p->tree.failed)
                return error_nomem(err);
        if (!right)
                return error_set(err, STENO_ECORRUPT,
                    "record %llu, or seal/leaves, is not what was sealed; steno verify says more",
                    (unsigned long long)p->seq);
        put_proof(out, p, note, path, count);
        return buf_check(out, err);
}

int seal_prove(struct files_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err)
{
        struct proving p = {.seq = seq};
        struct note note;
        char *notes;
        size_t n, end;
        int rc = seal_read_notes(conv, &notes, &n, err);
        if (rc)
                return rc;
        buf_init(&p.c, 0);
        if (merkle_init(&p.tree))
                rc = error_nomem(err);
        else if (!notes || !note_last(str_span(notes, n), &note, &end))
                rc = error_set(err, STENO_ENOTFOUND, "the conversation is not sealed");
        else
                rc = prove(conv, &p, &note, out, err);
        merkle_release(&p.tree);
        buf_release(&p.c);
        free(notes);
        return rc;
}
