/*
 * log_seen.h - the log of a conversation, open for reading, and what this process knows of it.
 *
 * To find the end of a log takes a dozen system calls, and to find its amendments may take reading
 * all of it. Readers of one handle therefore share a descriptor, and with it what they found: a
 * file that is open keeps its inode, so a name that still leads to this inode leads to this file.
 *
 *   V1  An end counts while the file has the size and change time that it had before the search.
 *       Only an end without anything torn or missing is kept.
 *   V2  Amendments are kept with the end that they were found before. When the end has changed,
 *       those up to the synced mark still count, as long as the bytes before the mark are the same.
 *       Bytes behind the mark may have been taken back, or an older copy of the log may have been
 *       written over the file and have grown since. None are kept where something was damaged,
 *       because a repair may bring back what could not be read. A log that is rewritten is another
 *       file.
 */
#ifndef STORE_FILES_LOG_SEEN_H
#define STORE_FILES_LOG_SEEN_H

#include "store/files/ids.h"
#include "store/files/log.h"

struct files_conv;
struct log_seen;

struct log_reader {
        struct files_conv *conv;
        const struct fs *fs;
        int fd; /* -1: there is no log */
        struct log_end at;
        struct ids ids;        /* see log_reader_ids */
        struct log_seen *seen; /* whose descriptor it is; NULL: there is no log */
        uint64_t state; /* of the file, among those that were seen; 0: not one that is kept */
};

/* A missing log is an empty one here. */
int log_reader_open(struct files_conv *conv, struct log_reader *out, struct steno_error *err);
/* r->ids, opened with the first call. */
struct ids *log_reader_ids(struct log_reader *r);
void log_reader_close(struct log_reader *r);

/* The amendments in the first *upto bytes: their seqs, ascending, to be freed. False: it is not
 * known. */
bool log_reader_amends(const struct log_reader *r, uint64_t *upto, uint64_t **seqs, size_t *count);
/* All amendments of the log are known: those up to the mark are kept (V2). */
void log_reader_keep_amends(const struct log_reader *r, const uint64_t *seqs, size_t count);

/* When the conversation's handle goes away; NULL does nothing. */
void log_seen_release(const struct fs *fs, struct log_seen *seen);
/* In a child of fork(): lets go of the descriptor and of nothing else. */
void log_seen_abandon(const struct fs *fs, const struct log_seen *seen);

#endif
