/*
 * record.h - one line of a log.
 *
 *   {"v":1,"seq":12,"id":"msg_...","at":"...","fmt":"openai","batch":[0,1],"x":{...},"m":...,"crc":"9ae0daaf"}
 *
 * The members stand in this order, without white space between them, so that a header is read
 * by position and the message is a span. `crc` is CRC-32C, eight hex digits, over the line before
 * `,"crc"`. docs/format.md is the normative text. Knows nothing of files.
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
        struct str id; /* JSON-escaped as it stands in the line; plain for made ids */
        struct str at;
        struct str fmt;
        uint32_t batch_index;
        uint32_t batch_count;
        uint64_t group;  /* bytes from the start of the write this batch was part of */
        struct str x;    /* the about object */
        struct str m;    /* the message */
        struct str line; /* all of it, without its line feed */
};

/* The members between the id and the x, and the name of the x. `group` 0: the batch has none. */
void record_put_fields(struct buf *out, const struct record *r, uint64_t group);
/* Appends a record and its line feed to `out`. `id` is decoded text. */
void record_write(struct buf *out, const struct record *r, struct str id);

/* Reads a line (without its line feed) and verifies its checksum. False: it is damaged. */
bool record_read(struct str line, struct record *out);

/*
 * The record that `text` begins with, verified, without looking for the end of its line: its x
 * says how long the message is. False: it does not, or not all of the line is there, or something
 * is wrong with it; then the line has to be found first, and read.
 */
bool record_take(struct str text, struct record *out);

/* Only the header, without the checksum: for walking. False: not a record. */
bool record_peek(struct str line, struct record *out);

#endif
