/*
 * artifact.h - the files beside a log: tool outputs, terminals, and large tokens of messages.
 *
 *   artifacts/tool/<call id>.json|.txt|.bin    artifacts/terminal/<snippet id>.log
 *   artifacts/parts/<sha256 of the token>      artifacts/.idx/<ref>.lines (derived)
 *   artifacts/manifest.jsonl                   a line for each change of an artifact
 *
 * A manifest line is {"id","kind","name","created","hint", ...} and later lines of the same id
 * count: `"state":"open"` when it begins, `"closed"` with size, lines, mime and sha256 when it is
 * whole, `"deleted"` with when and by what. One that was opened and never closed is unfinished;
 * what had arrived is there. The folder alone is enough to rebuild every ref.
 *
 *   A1  A closed artifact, its name and its manifest line are synced before artifact_close
 *       returns; the record that names it comes later (S4).
 *   A2  No two artifacts share a name, whatever their ids: a name is taken with O_EXCL, and is the
 *       id itself only while that is plain and free.
 *   A3  Writers append to the manifest under flock on it; a torn last line is ended first. A repair
 *       replaces it under the same lock; a process that has waited for the lock checks that the
 *       file is still the same.
 */
#ifndef STORE_FILES_ARTIFACT_H
#define STORE_FILES_ARTIFACT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "store/files/files.h"

#define ARTIFACT_SUFFIXES 4

/* What names end in. */
extern const char *const artifact_suffixes[ARTIFACT_SUFFIXES];

/* ---- writing ---- */

struct artifact;

/*
 * Begins one; others can read it from now on. `want` is the name it should have (a call id), of
 * kind "tool" or "terminal". O_EXCL and A2 decide the name.
 */
int artifact_begin(struct files_conv *conv, const char *kind, struct str want, struct str hint,
    struct artifact **out, struct steno_error *err);
/*
 * Begins an artifact again whose file or line was lost, with the id, kind, hint and time of `info`.
 * A file that has its name is moved to the quarantine. The manifest gets no line before it is
 * closed.
 */
int artifact_begin_again(struct files_conv *conv, const struct artifact_info *info, struct str want,
    struct artifact **out, struct steno_error *err);
const char *artifact_id(const struct artifact *a);
/* STENO_EQUOTA: a quota is reached (quota.h), and nothing of the piece was written. The artifact is
 * whole up to there and can be closed. */
int artifact_write(struct artifact *a, const void *p, size_t n, struct steno_error *err);
/* The next pieces ignore the quota: they are a note that it was reached. */
void artifact_lift_quota(struct artifact *a);
/* The next piece of its line index (.idx), as it is made. */
void artifact_index(struct artifact *a, struct str bytes);

/* Synced under its final name (A1). Fills `info` (may be NULL). */
int artifact_close(struct artifact *a, const struct artifact_end *end, struct artifact_info *info,
    struct steno_error *err);
/* Frees. One that was not closed stays as it is, unfinished. */
void artifact_free(struct artifact *a);
/* Removes an artifact, closed or open, because the append that it was made for failed. */
void artifact_undo(struct files_conv *conv, const char *id);

/* ---- reading ---- */

/* STENO_ENOTFOUND: no such ref here. A deleted one is found, with its state. */
int artifact_find(
    struct files_conv *conv, struct str id, struct artifact_info *out, struct steno_error *err);
/* Newest first; stops at the first non-zero return of `each`, which it returns. */
int artifact_each(struct files_conv *conv, int (*each)(void *ctx, const struct artifact_info *info),
    void *ctx, struct steno_error *err);
/* A descriptor to read from. *size is what there is now. */
int artifact_open(struct files_conv *conv, const struct artifact_info *info, int *fd,
    uint64_t *size, struct steno_error *err);
/* Does a closed artifact still have the bytes that it was closed with? STENO_ECORRUPT: no, or they
 * are missing. */
int artifact_verify(
    struct files_conv *conv, const struct artifact_info *info, struct steno_error *err);
/* The line index, freed with free(); *n is 0 when there is none. */
int artifact_lines(struct files_conv *conv, const struct artifact_info *info, char **p, size_t *n,
    struct steno_error *err);
/* Removes the bytes, keeps a tombstone in the manifest. */
int artifact_delete(
    struct files_conv *conv, const char *id, const char *by, struct steno_error *err);

/* ---- lines that were lost (relist.c) ---- */

/*
 * Rebuilds the closing line of an artifact. `call` is the call id of its record, and `said` what
 * the record's ref says. *done: exactly one file matches, and has the hash if that is known. The
 * caller holds the conversation.
 */
int relist(struct files_conv *conv, const struct artifact_info *said, struct str call, bool *done,
    struct steno_error *err);

/* Reads an open file of info->size bytes and fills in what a closing line says of them: sha256,
 * lines, utf8. STENO_ECORRUPT: its bytes have not the sha256 that is already there. */
int relist_measure(
    const struct fs *fs, int fd, struct artifact_info *info, struct steno_error *err);

/* ---- parts: large tokens of messages, raw ---- */

/* Stores a token, synced; the same bytes are stored once. Fills `name`. */
int part_put(
    struct files_conv *conv, struct str token, char name[PART_NAME], struct steno_error *err);
/* Streams a part. STENO_ECORRUPT: it is missing, or its bytes do not match its name. `sink` may
 * have got some bytes by then. A caller that cannot take them back calls with a NULL sink first. */
int part_get(struct files_conv *conv, struct str name, uint64_t size, steno_sink sink, void *ctx,
    struct steno_error *err);

/* Moves one whose bytes are not those of its name to the quarantine, so that it counts as missing
 * until it is stored again. *dropped says that it was one. */
int part_drop_wrong(
    struct files_conv *conv, const char *name, bool *dropped, struct steno_error *err);

#endif
