/*
 * backend_proof.c - checking the proof that a record is in a sealed conversation. It needs no
 * store: whoever has the proof and the public key needs nothing else.
 */
#include "store/backend.h"

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"

static int wrong(struct steno_error *err, const char *what)
{
        return error_set(err, STENO_ECORRUPT, "the proof is wrong: %s", what);
}

static int climb(const struct json *j, struct merkle *tree, const struct note *note,
    struct str record, struct steno_error *err)
{
        struct merkle_hash path[MERKLE_DEPTH], leaf, root;
        uint64_t index = 0, size = 0;
        unsigned count = 0;
        json_ref hashes = json_get(j, 0, "hashes");
        if (!json_u64(j, json_get(j, 0, "index"), &index) ||
            !json_u64(j, json_get(j, 0, "size"), &size) || json_type(j, hashes) != JSON_ARRAY ||
            json_count(j, hashes) > MERKLE_DEPTH)
                return wrong(err, "index, size or hashes are missing");
        for (json_ref h = json_child(j, hashes); h != JSON_NONE; h = json_next(j, hashes, h))
                if (!base64_take(json_inner(j, h), path[count++].b, sizeof path->b))
                        return wrong(err, "a hash cannot be read");
        if (record.p)
                leaf = merkle_leaf(tree, record.p, record.n, "", 0);
        else if (!leaf_from_hex(json_inner(j, json_get(j, 0, "leaf")), &leaf))
                return wrong(err, "it has neither a record nor a leaf");
        if (size != note->size)
                return wrong(err, "its size is not that of its checkpoint");
        if (!merkle_climb(tree, &leaf, index, size, path, count, &root) ||
            !merkle_same(&root, &note->root))
                return wrong(err, "the record is not in the tree of the checkpoint");
        return tree->failed ? error_nomem(err) : 0;
}

/* The record must be the one of its index. */
static int check_seq(const struct json *j, struct str record, struct steno_error *err)
{
        struct json r;
        uint64_t index = 0, seq = 0;
        json_u64(j, json_get(j, 0, "index"), &index);
        json_init(&r);
        int rc = json_parse(&r, record.p, record.n, NULL, NULL);
        bool right = rc == 0 && json_u64(&r, json_get(&r, 0, "seq"), &seq) && seq == index + 1;
        json_release(&r);
        return rc == STENO_ENOMEM ? error_nomem(err)
               : right            ? 0
                                  : wrong(err, "the record has another seq than its place");
}

int backend_seal_prove_check(struct str json, const struct note_key *key, struct steno_error *err)
{
        struct json j;
        struct merkle tree = {0};
        struct buf record, text;
        struct note note;
        size_t n;
        json_init(&j);
        buf_init(&record, 0);
        buf_init(&text, 0);
        int rc = json_parse(&j, json.p, json.n, NULL, NULL);
        if (rc == STENO_ENOMEM)
                error_nomem(err);
        else if (rc || json_type(&j, 0) != JSON_OBJECT)
                rc = wrong(err, "it is not a JSON object");
        bool has = rc == 0 && json_string(&j, json_get(&j, 0, "record"), &record, NULL);
        if (rc == 0 && (!json_string(&j, json_get(&j, 0, "checkpoint"), &text, NULL) ||
                           !note_read(buf_str(&text), &note, &n)))
                rc = wrong(err, "its checkpoint cannot be read");
        if (rc == 0 && (record.failed || text.failed || merkle_init(&tree)))
                rc = error_nomem(err);
        if (rc == 0 && key && (rc = note_check(&note, key)) <= 0)
                rc = rc ? error_nomem(err) : wrong(err, "its checkpoint is not signed by this key");
        else if (rc == 1)
                rc = 0;
        if (rc == 0)
                rc = climb(&j, &tree, &note, has ? buf_str(&record) : (struct str){0}, err);
        if (rc == 0 && has)
                rc = check_seq(&j, buf_str(&record), err);
        merkle_release(&tree);
        buf_release(&record);
        buf_release(&text);
        json_release(&j);
        return rc;
}
