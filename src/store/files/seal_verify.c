/* seal_verify.c - see seal_verify.h */
#include "store/files/seal_verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "store/files/conv.h"

#define SHIFT_MAX 16 /* so many consecutive records can be recognised as added or removed */

/* ---- roots ---- */

/* A root that the first `size` records must give. */
struct root {
        uint64_t size;
        struct merkle_hash hash;
        const char *who;  /* says so */
        bool leaves_give; /* seal/leaves does, */
        bool log_gives;   /* and the records do */
};

struct verifying {
        struct files_conv *conv;
        const struct fs *fs;
        const char *name;
        struct seal_check *k;
        char *notes;
        size_t notes_n;
        struct root *roots; /* ascending */
        size_t root_count;
        size_t root_cap;
        struct note_ranges purged;  /* entered and signed, */
        struct note_ranges entered; /* or entered at least */
        struct merkle_hash *leaves; /* what was sealed */
        uint64_t size;              /* how many */
        bool trusted;               /* `leaves` give the last root */
        unsigned char *met;         /* a bit for each leaf that a record has */
        struct merkle tree;
        struct merkle other; /* of the records as they are */
        struct buf scratch;
        struct seal_named named;
        int64_t shift; /* that fitted last */
        uint64_t last_seq;
        uint64_t next_root; /* of those that the records are held against */
        /* Findings of one kind about records in a row. */
        struct seal_finding run;
        int64_t run_shift;
        struct steno_error *err;
};

static int add_root(
    struct verifying *v, uint64_t size, const struct merkle_hash *hash, const char *who)
{
        if (!grow_room(v->roots, v->root_count, v->root_cap))
                return error_nomem(v->err);
        v->roots[v->root_count++] = (struct root){.size = size, .hash = *hash, .who = who};
        return 0;
}

static int add_purged(struct verifying *v, struct note_ranges *to, struct str seqs)
{
        if (note_ranges_read(to, seqs))
                return 0;
        struct seal_finding f = {.kind = "seal"};
        return backend_seal_tell(v->k, f, "what was purged cannot be read from the seal");
}

/* The checkpoints of the conversation itself. */
static int take_notes(struct verifying *v)
{
        char origin[sizeof SEAL_ORIGIN + SEAL_CONV];
        struct seal_finding f = {.kind = "seal"};
        struct note note, last = {0};
        size_t at = 0, n;
        uint64_t number = 0, size = 0;
        int rc = seal_read_notes(v->conv, &v->notes, &v->notes_n, v->err);
        snprintf(origin, sizeof origin, SEAL_ORIGIN "%s", v->name);
        while (rc == 0 && at < v->notes_n) {
                if (!note_read(str_span(v->notes + at, v->notes_n - at), &note, &n))
                        return backend_seal_tell(v->k, f,
                            "seal/checkpoints cannot be read from byte %llu on",
                            (unsigned long long)at);
                at += n;
                number++;
                int is_signed = v->k->key ? note_check(&note, v->k->key) : 1;
                if (is_signed < 0)
                        return error_nomem(v->err);
                if (!is_signed)
                        rc = backend_seal_tell(v->k, f,
                            "checkpoint %llu is not signed by the key %s",
                            (unsigned long long)number, v->k->key->name);
                else if (!str_is(note.origin, origin))
                        rc = backend_seal_tell(v->k, f,
                            "checkpoint %llu is of another conversation, or the id, the project or "
                            "the uid in meta.json was changed",
                            (unsigned long long)number);
                else if (note.size < size)
                        rc = backend_seal_tell(v->k, f,
                            "checkpoint %llu covers fewer records than the one before it",
                            (unsigned long long)number);
                else
                        rc = add_root(v, note.size, &note.root, "a checkpoint");
                if (is_signed && str_is(note.origin, origin)) {
                        size = note.size > size ? note.size : size;
                        last = note;
                }
        }
        return rc ? rc : add_purged(v, &v->purged, last.purged);
}

/* What the store's log says of it. */
static int take_log(struct verifying *v)
{
        size_t count = 0;
        const struct seal_entry *e = v->k->log ? seal_log_of(v->k->log, v->name, &count) : NULL;
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < count; i++) {
                if (e[i].type == SEAL_ENTRY_HEAD)
                        rc = add_root(v, e[i].size, &e[i].root, "the store's log");
                else if (e[i].type == SEAL_ENTRY_PURGED)
                        rc = add_purged(
                            v, e[i].index < v->k->log_signed ? &v->purged : &v->entered, e[i].seqs);
        }
        return rc;
}

static int by_size(const void *a, const void *b)
{
        const struct root *x = a, *y = b;
        return (x->size > y->size) - (x->size < y->size);
}

/* Which roots do the leaves give? */
static int check_leaves(struct verifying *v)
{
        uint64_t have, wanted = v->root_count ? v->roots[v->root_count - 1].size : 0;
        int rc = seal_read_leaves(v->conv, wanted, &v->leaves, &have, v->err);
        if (rc)
                return rc;
        v->size = wanted;
        v->trusted = false;
        merkle_clear(&v->tree);
        for (size_t i = 0; i < v->root_count; i++) {
                while (v->tree.size < v->roots[i].size && v->tree.size < have)
                        merkle_push(&v->tree, &v->leaves[v->tree.size]);
                struct merkle_hash root = merkle_root(&v->tree);
                v->roots[i].leaves_give =
                    v->tree.size == v->roots[i].size && merkle_same(&root, &v->roots[i].hash);
                /* Where two of them contradict each other, tell_roots says which is not met. */
                if (v->roots[i].size == wanted)
                        v->trusted = v->trusted || v->roots[i].leaves_give;
        }
        v->met = v->trusted ? calloc(wanted / 8 + 1, 1) : NULL;
        return v->trusted && !v->met ? error_nomem(v->err) : 0;
}

/* ---- records ---- */

static int end_run(struct verifying *v)
{
        struct seal_finding f = v->run;
        uint64_t first = f.seq, last = f.last_seq;
        v->run = (struct seal_finding){0};
        if (!f.kind)
                return 0;
        bool one = first == last;
        if (strcmp(f.kind, "moved") == 0)
                return backend_seal_tell(v->k, f,
                    one ? "record %llu stands in the place of record %llu"
                        : "records from %llu on stand in the places from %llu on",
                    (unsigned long long)((int64_t)first - v->run_shift), (unsigned long long)first);
        if (strcmp(f.kind, "purged") == 0)
                return backend_seal_tell(v->k, f, "purged, and entered in the seal as such");
        if (strcmp(f.kind, "unsigned") == 0)
                return backend_seal_tell(
                    v->k, f, "purged, which no checkpoint covers yet: steno seal signs it");
        if (strcmp(f.kind, "lost") == 0)
                return backend_seal_tell(v->k, f,
                    "the record%s could not be read when the store was repaired", one ? "" : "s");
        if (strcmp(f.kind, "tombstone") == 0) {
                f.kind = "removed";
                return backend_seal_tell(v->k, f,
                    "a tombstone stands in the place of the record%s, and no purge of it was "
                    "entered",
                    one ? "" : "s");
        }
        return backend_seal_tell(
            v->k, f, "the record%s %s %s", one ? "" : "s", one ? "was" : "were", f.kind);
}

/* Findings about records in a row are one. */
static int tell_record(
    struct verifying *v, const char *kind, bool note, uint64_t seq, int64_t shift)
{
        int rc = 0;
        if (v->run.kind && strcmp(v->run.kind, kind) == 0 && v->run.last_seq + 1 == seq &&
            v->run_shift == shift) {
                v->run.last_seq = seq;
                return 0;
        }
        rc = end_run(v);
        v->run = (struct seal_finding){.kind = kind, .note = note, .seq = seq, .last_seq = seq};
        v->run_shift = shift;
        return rc;
}

static bool meet(struct verifying *v, uint64_t seq)
{
        unsigned char *byte = &v->met[(seq - 1) / 8], bit = (unsigned char)(1u << (seq - 1) % 8);
        bool first = !(*byte & bit);
        *byte |= bit;
        return first;
}

static bool has_met(const struct verifying *v, uint64_t seq)
{
        return v->met[(seq - 1) / 8] & (1u << (seq - 1) % 8);
}

/* Is it the record of another seq, which was given this one? */
static bool find_shift(struct verifying *v, const struct record *rec, int64_t *shift)
{
        struct merkle_hash leaf;
        for (int64_t i = -1; i < 2 * SHIFT_MAX; i++) {
                int64_t d = i < 0 ? v->shift : i % 2 ? -(i / 2 + 1) : i / 2 + 1;
                int64_t was = (int64_t)rec->seq - d;
                struct record copy = *rec;
                if (d == 0 || was < 1 || (uint64_t)was > v->size)
                        continue;
                copy.seq = (uint64_t)was;
                if (leaf_of_own(&v->tree, &copy, &v->scratch, &leaf) &&
                    merkle_same(&leaf, &v->leaves[was - 1])) {
                        *shift = d;
                        return true;
                }
        }
        return false;
}

/* A tombstone that has the leaf of what was there. */
static int judge_tombstone(struct verifying *v, const struct record *rec)
{
        if (about_is_lost(rec->x) && !note_ranges_have(&v->purged, rec->seq))
                return tell_record(v, "lost", false, rec->seq, 0);
        if (!str_is(rec->m, "null"))
                return tell_record(v, "changed", false, rec->seq, 0);
        if (note_ranges_have(&v->purged, rec->seq)) {
                v->k->purged++;
                return tell_record(v, "purged", true, rec->seq, 0);
        }
        return tell_record(v, note_ranges_have(&v->entered, rec->seq) ? "unsigned" : "tombstone",
            false, rec->seq, 0);
}

static int judge(struct verifying *v, const struct record *rec, const struct merkle_hash *leaf)
{
        int64_t shift = 0;
        struct merkle_hash said;
        bool in_place = rec->seq > v->last_seq;
        bool same = rec->seq <= v->size && merkle_same(leaf, &v->leaves[rec->seq - 1]);
        v->last_seq = in_place ? rec->seq : v->last_seq;
        if (same && !meet(v, rec->seq))
                return tell_record(v, "added", false, rec->seq, 0);
        if (same && !in_place)
                return tell_record(v, "moved", false, rec->seq, 0);
        if (same && leaf_said(rec->x, &said))
                return judge_tombstone(v, rec);
        if (same)
                return 0;
        if (find_shift(v, rec, &shift)) {
                v->shift = shift;
                meet(v, (uint64_t)((int64_t)rec->seq - shift));
                return tell_record(v, "moved", false, rec->seq, shift);
        }
        if (rec->seq > v->size) {
                v->k->unsealed++;
                return 0;
        }
        /* It is reported as changed if no other record of this seq is found (tell_unmet). */
        return 0;
}

/* Sealed records that were not met: another stands there, or none. */
static int tell_unmet(struct verifying *v, const unsigned char *there)
{
        int rc = 0;
        for (uint64_t seq = 1; rc == 0 && seq <= v->size; seq++) {
                bool met = has_met(v, seq);
                bool stands = there[(seq - 1) / 8] & (1u << (seq - 1) % 8);
                if (!met)
                        rc = tell_record(v, stands ? "changed" : "removed", false, seq, 0);
        }
        return rc ? rc : end_run(v);
}

/* Without leaves: do the records give the roots? */
static void compare_roots(struct verifying *v, const struct merkle_hash *leaf)
{
        if (leaf)
                merkle_push(&v->other, leaf);
        while (v->next_root < v->root_count && v->roots[v->next_root].size <= v->other.size) {
                struct root *r = &v->roots[v->next_root++];
                struct merkle_hash root = merkle_root(&v->other);
                r->log_gives = r->size == v->other.size && merkle_same(&root, &r->hash);
        }
}

static int look_at_line(struct verifying *v, struct str line, uint64_t at, unsigned char *there)
{
        struct record rec;
        struct merkle_hash leaf;
        if (!record_read(line, &rec)) {
                struct seal_finding f = {.kind = v->last_seq < v->size ? "changed" : "uncovered",
                    .note = v->last_seq >= v->size};
                return backend_seal_tell(v->k, f,
                    "the line at byte %llu of the log is not a record, or not the one that was "
                    "stored",
                    (unsigned long long)at);
        }
        if (!leaf_of(&v->tree, &rec, &v->scratch, &leaf))
                return error_nomem(v->err);
        bool covered =
            v->trusted && rec.seq <= v->size && merkle_same(&leaf, &v->leaves[rec.seq - 1]);
        int rc = seal_verify_outputs(v->conv, &rec, covered, &v->named, v->k, v->err);
        if (!v->trusted) {
                if (rec.seq == v->other.size + 1)
                        compare_roots(v, &leaf);
                return rc;
        }
        if (rec.seq <= v->size && !(there[(rec.seq - 1) / 8] & (1u << (rec.seq - 1) % 8)))
                there[(rec.seq - 1) / 8] |= (unsigned char)(1u << (rec.seq - 1) % 8);
        return rc ? rc : judge(v, &rec, &leaf);
}

static int walk(struct verifying *v)
{
        struct lines lines;
        struct str line;
        struct stat st;
        uint64_t at;
        int fd = v->fs->open(v->fs, v->conv->dir, "messages.jsonl", O_RDONLY, 0);
        int rc = fd == -ENOENT ? 0 : fd < 0 ? fd : v->fs->fstat(v->fs, fd, &st);
        unsigned char *there = calloc(v->size / 8 + 1, 1);
        if (!there)
                rc = -ENOMEM;
        rc = rc ? error_sys(v->err, rc, "opening messages.jsonl") : 0;
        if (rc == 0 && fd >= 0) {
                line_reader_init(&lines, v->fs, fd, 256 * KIB, 0, (uint64_t)st.st_size);
                while ((rc = line_reader_next(&lines, &line, &at, v->err)) > 0) {
                        rc = look_at_line(v, rc == 1 ? line : (struct str){0}, at, there);
                        if (rc)
                                break;
                }
                line_reader_release(&lines);
        }
        if (fd >= 0)
                v->fs->close(v->fs, fd);
        compare_roots(v, NULL);
        if (rc == 0)
                rc = end_run(v);
        if (rc == 0 && v->trusted)
                rc = tell_unmet(v, there);
        free(there);
        return rc;
}

/* The leaves are lost or changed: what can be said without them. */
static int tell_without_leaves(struct verifying *v)
{
        struct seal_finding f = {.kind = "seal"};
        uint64_t good = 0, bad = 0;
        if (v->trusted || v->root_count == 0)
                return 0;
        for (size_t i = 0; i < v->root_count && bad == 0; i++) {
                if (!v->roots[i].log_gives)
                        bad = v->roots[i].size;
                else if (i + 1 < v->root_count && v->roots[i + 1].size > v->roots[i].size)
                        good = v->roots[i].size;
        }
        if (bad == 0)
                return backend_seal_tell(v->k, f,
                    "seal/leaves was changed or is missing; the records are what was sealed, and "
                    "steno seal makes it again");
        f = (struct seal_finding){.kind = "changed", .seq = good + 1, .last_seq = bad};
        return backend_seal_tell(v->k, f,
            "among these records some were changed, added, removed or moved; seal/leaves, which "
            "would say which, was changed or is missing as well");
}

/* Reports roots that do not follow from the (correct) leaves: the history was rewritten and sealed
 * again. */
static int tell_roots(struct verifying *v)
{
        int rc = 0;
        for (size_t i = 0; rc == 0 && v->trusted && i < v->root_count; i++) {
                struct seal_finding f = {.kind = "changed", .seq = 1, .last_seq = v->roots[i].size};
                if (!v->roots[i].leaves_give)
                        rc = backend_seal_tell(v->k, f,
                            "the first %llu records are not those that %s has the root of",
                            (unsigned long long)v->roots[i].size, v->roots[i].who);
        }
        return rc;
}

static int take_kept(struct verifying *v)
{
        char origin[sizeof SEAL_ORIGIN + SEAL_CONV];
        int rc = 0;
        snprintf(origin, sizeof origin, SEAL_ORIGIN "%s", v->name);
        for (size_t i = 0; rc == 0 && i < v->k->kept_count; i++)
                if (str_is(v->k->kept[i].origin, origin))
                        rc = add_root(v, v->k->kept[i].size, &v->k->kept[i].root,
                            "a checkpoint that was given");
        return rc;
}

static int verify(struct verifying *v)
{
        struct seal_finding f = {.kind = "seal"};
        int rc = take_notes(v);
        bool own = v->root_count > 0;
        if (rc == 0)
                rc = take_log(v);
        if (rc == 0 && !own && v->root_count)
                rc = backend_seal_tell(
                    v->k, f, "the seal of the conversation is missing; the store's log has it");
        if (rc == 0)
                rc = take_kept(v);
        if (v->root_count)
                qsort(v->roots, v->root_count, sizeof *v->roots, by_size);
        if (rc == 0)
                rc = check_leaves(v);
        if (rc == 0)
                rc = walk(v);
        if (rc == 0)
                rc = tell_without_leaves(v);
        if (rc == 0)
                rc = tell_roots(v);
        if (rc == 0)
                rc = seal_verify_strays(v->conv, &v->named, v->k, v->err);
        v->k->records += v->size;
        return rc == 0 && (v->tree.failed || v->other.failed) ? error_nomem(v->err) : rc;
}

int seal_verify(
    struct files_conv *conv, const char *name, struct seal_check *check, struct steno_error *err)
{
        struct steno_error why = {0};
        struct verifying v = {.conv = conv,
            .fs = conv->store->env->fs,
            .name = name,
            .k = check,
            .err = err ? err : &why};
        buf_init(&v.scratch, 0);
        arena_init(&v.named.arena);
        int rc = merkle_init(&v.tree) || merkle_init(&v.other) ? error_nomem(v.err) : verify(&v);
        merkle_release(&v.tree);
        merkle_release(&v.other);
        buf_release(&v.scratch);
        arena_release(&v.named.arena);
        note_ranges_release(&v.purged);
        note_ranges_release(&v.entered);
        free(v.named.list);
        free(v.notes);
        free(v.roots);
        free(v.leaves);
        free(v.met);
        return rc;
}

bool seal_is_known(struct files_conv *conv, const char *name, const struct seal_log *log)
{
        struct stat st;
        const struct fs *fs = conv->store->env->fs;
        size_t count = 0;
        if (fs->stat(fs, conv->dir, "seal/checkpoints", &st) == 0)
                return true;
        if (log && name[0])
                seal_log_of(log, name, &count);
        return count > 0;
}

/* ---- the log ---- */

/* Does the log give this root? */
static bool log_gives(const struct seal_log *log, const struct note *note, struct merkle *tree)
{
        if (note->size > log->lines)
                return false;
        if (tree->size > note->size)
                merkle_clear(tree);
        while (tree->size < note->size)
                merkle_push(tree, &log->leaves[tree->size]);
        struct merkle_hash root = merkle_root(tree);
        return merkle_same(&root, &note->root);
}

static int check_log_notes(struct seal_check *k, const char *origin, struct merkle *tree)
{
        const struct seal_log *log = k->log;
        struct seal_finding f = {.kind = "log"};
        struct note note;
        uint64_t number = 0;
        int rc = 0;
        for (size_t at = 0, n; rc == 0 && at < log->notes_n; at += n) {
                if (!note_read(str_span(log->notes + at, log->notes_n - at), &note, &n))
                        return backend_seal_tell(k, f,
                            "the checkpoints of the store's log cannot be read from byte %llu on",
                            (unsigned long long)at);
                number++;
                int is_signed = k->key ? note_check(&note, k->key) : 1;
                if (is_signed < 0)
                        return is_signed;
                if (!is_signed)
                        rc = backend_seal_tell(k, f,
                            "checkpoint %llu of the store's log is not signed by the key %s",
                            (unsigned long long)number, k->key->name);
                else if (!str_is(note.origin, origin) || !log_gives(log, &note, tree))
                        rc = backend_seal_tell(k, f,
                            "the store's log is not what its checkpoint %llu says: entries were "
                            "changed or removed",
                            (unsigned long long)number);
                else if (note.size > k->log_signed)
                        k->log_signed = note.size;
        }
        return rc;
}

static int check_given(
    struct seal_check *k, const struct note *note, const char *origin, struct merkle *tree)
{
        struct seal_finding f = {.kind = "log"};
        if (!str_starts(note->origin, SEAL_LOG_ORIGIN))
                return 0;
        if (!str_is(note->origin, origin))
                return backend_seal_tell(
                    k, f, "a checkpoint that was given is of another store's log");
        if (log_gives(k->log, note, tree))
                return 0;
        return note->size > k->log->lines
                   ? backend_seal_tell(k, f,
                         "the store's log has %llu entries, and had %llu when a checkpoint that "
                         "was "
                         "given was made",
                         (unsigned long long)k->log->lines, (unsigned long long)note->size)
                   : backend_seal_tell(k, f,
                         "the store's log is not a continuation of a checkpoint that was given: "
                         "entries were changed");
}

int seal_verify_log(struct seal_check *k, struct steno_error *err)
{
        const struct seal_log *log = k->log;
        struct merkle tree;
        struct seal_finding f = {.kind = "log"};
        char origin[64];
        snprintf(origin, sizeof origin, SEAL_LOG_ORIGIN "%s", log->id);
        if (merkle_init(&tree))
                return error_nomem(err);
        k->log_signed = 0;
        int rc = check_log_notes(k, origin, &tree);
        for (size_t i = 0; rc == 0 && i < k->kept_count; i++)
                rc = check_given(k, &k->kept[i], origin, &tree);
        if (rc == 0 && log->strange + (log->torn > 0) > 0)
                rc = backend_seal_tell(k, f, "%llu line%s of the store's log cannot be read",
                    (unsigned long long)(log->strange + (log->torn > 0)),
                    log->strange + (log->torn > 0) == 1 ? "" : "s");
        if (rc == 0 && log->lines > k->log_signed) {
                f.kind = "unsigned";
                rc = backend_seal_tell(k, f,
                    "the last %llu of %llu entries of the store's log are covered by no "
                    "checkpoint: "
                    "steno seal signs them",
                    (unsigned long long)(log->lines - k->log_signed),
                    (unsigned long long)log->lines);
        }
        bool failed = tree.failed;
        merkle_release(&tree);
        return rc == 0 && failed ? error_nomem(err) : rc;
}
