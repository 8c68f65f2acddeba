/*
 * archive.h - a backup as one stream: the files of the folder that a backup would be, in a
 * .tar.zst.
 *
 *   backup.json, then the files of one conversation after the other, then those of the root, and
 *   last complete.json. It has the SHA-256 over everything before it: of each file its name, a NUL,
 *   its size in decimal, a NUL and its bytes.
 *
 * Conversations are copied to a folder first (store/files/backup.h), because a copy may have to
 * begin again, which a stream cannot do. Then they are moved into the stream and removed from the
 * folder, so that it holds one conversation at a time.
 */
#ifndef STORE_FILES_ARCHIVE_H
#define STORE_FILES_ARCHIVE_H

#include "base/fs.h"
#include "base/hash.h"
#include "base/tarball.h"

struct archive_out {
        const struct fs *fs;
        struct tarball_writer *tar;
        struct sha256 sha;
        uint64_t files;
        uint64_t bytes;
};

int archive_out_open(struct archive_out *a, const struct fs *fs, steno_sink sink, void *ctx,
    struct steno_error *err);
/* The file that says what it is. */
int archive_out_begin(struct archive_out *a, int root, const char *kind, struct steno_error *err);
/* Moves the files below `dir`, which is <above>/<folder>, into the stream. Hidden ones stay. */
int archive_out_move(
    struct archive_out *a, int dir, const char *above, const char *folder, struct steno_error *err);
/* The other files of the folder, and complete.json: the object `report` with the sum. */
int archive_out_end(struct archive_out *a, int root, struct str report, struct steno_error *err);
void archive_out_release(struct archive_out *a);

/* Unpacks one into an empty folder. STENO_EPROTO: it is not a backup; STENO_ECORRUPT: it is cut off
 * or changed. What is in the folder then is the caller's to remove. */
int archive_in(const struct fs *fs, int to, steno_source source, void *ctx, uint64_t *files,
    uint64_t *bytes, struct steno_error *err);

/* Is this a file or folder that the root of a backup has, besides its notes? */
bool archive_is_top(const char *name);

#endif
