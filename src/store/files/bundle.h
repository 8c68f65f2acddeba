/*
 * bundle.h - a conversation as files of a bundle: what is in it, and bringing it back.
 *
 * The files of a conversation in a bundle, in this order, each group sorted by name:
 *
 *   messages.jsonl  meta.json  runs/<run>.jsonl  artifacts/manifest.jsonl
 *   artifacts/parts/<sha256>  artifacts/terminal/<name>  artifacts/tool/<name>
 *   seal/checkpoints  seal/leaves  transcript.md
 *
 *   B1  Sizes and hashes are known before the first byte is sent, and all bytes are compared with
 *       them: a receiver of the whole bundle has exactly what was announced.
 *   B2  The same conversation gives the same bytes: `group` of records is counted as after a purge,
 *       the manifest of artifacts has one line for each.
 *   B3  Nothing is locked. The log is read up to its end at the start, and so are outputs that are
 *       still being written. If a purge removes bytes meanwhile, the export stops.
 */
#ifndef STORE_FILES_BUNDLE_H
#define STORE_FILES_BUNDLE_H

#include "base/arena.h"
#include "base/hash.h"
#include "store/files/files.h"
#include "store/files/purge_plan.h"

struct bundle_conv {
        struct files_conv *conv;
        struct arena arena;
        int log;
        uint64_t end;
        uint64_t last_seq;
        struct purge_plan lost; /* records that become tombstones */
        struct buf meta;
        struct buf manifest;
        struct bundle_entry *entries;
        size_t count;
        size_t cap;
        uint64_t records;
        uint64_t bytes;
        uint64_t tombstones; /* outputs and messages whose bytes are not here */
};

/* Finds out what there is, and hashes it. Also releases on failure. */
int bundle_prepare(struct files_conv *conv, const struct bundle_options *opt,
    struct bundle_conv *out, struct steno_error *err);
/* Adds a file that lives in memory until the release, at the end. */
int bundle_add_text(
    struct bundle_conv *b, const char *name, struct str text, struct steno_error *err);
/* Hands out the bytes of a file (B1). */
int bundle_send(struct bundle_conv *b, const struct bundle_entry *entry, steno_sink sink, void *ctx,
    struct steno_error *err);
void bundle_release(struct bundle_conv *b);

/* ---- the other way ---- */

/*
 * Is what was unpacked into a folder a conversation that this store may take over: every line of
 * its log and journals of a size that can be looked at (unless `trusted`), and nothing that a check
 * would find? STENO_EPROTO says what is wrong.
 */
int bundle_verify(struct files_conv *conv, bool trusted, struct steno_error *err);

#endif
