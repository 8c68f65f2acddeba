/*
 * record.h - one line of a log.
 *
 *   {"v":1,"seq":12,"id":"msg_...","at":"...","fmt":"openai","batch":[0,1],"x":{...},"m":...,"crc":"9ae0daaf"}
 *
 * The members stand in this order, without white space between them, so that a header is read by
 * position and the message is a span. `crc` is CRC-32C, eight hex digits, over the line before
 * `,"crc"`. docs/format.md is the normative text. This file knows nothing of files.
 */
#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct record {
        uint64_t seq;
        struct str id; /* JSON-escaped as in the line; ids that Steno made need no escapes */
        struct str at;
        struct str fmt;
        uint32_t batch_index;
        uint32_t batch_count;
        uint64_t group;  /* bytes from the start of the write this batch was part of */
        struct str x;    /* the about object */
        struct str m;    /* the message */
        struct str line; /* the whole line without its line feed */
};

/* Writes the members between the id and the x, and the name of the x. `group` 0: the batch has
 * none. */
void record_put_fields(struct buf *out, const struct record *r, uint64_t group);
/* Appends a record and its line feed to `out`. `id` is decoded text. */
void record_write(struct buf *out, const struct record *r, struct str id);

/* Reads a line (without its line feed) and verifies its checksum. False: it is damaged. */
bool record_read(struct str line, struct record *out);

/*
 * Takes the record that `text` begins with, and verifies it, without searching the end of its line:
 * its x says how long the message is. Returns false if x does not say it, if the line is not
 * complete, or if something is wrong with it. Then the caller must find the end of the line and use
 * record_read.
 */
bool record_take(struct str text, struct record *out);

/* Reads only the header and does not verify the checksum; for walking a log. False: it is not a
 * record. */
bool record_peek(struct str line, struct record *out);

#endif
