/*
 * blocks.h - blocks of media and text of our own. They are shared by formats that have no shape for
 * media and results (toolmessage, chat, legacy):
 * {"type":"image"|"audio"|"file","mimeType","data"|"url","name"}, {"type":"text","text"}. Used
 * inside format/ only.
 */
#ifndef FORMAT_BLOCKS_H
#define FORMAT_BLOCKS_H

#include "format/format.h"
#include "format/reading.h"

/* Reads a text or media block; any other block becomes opaque. */
void blocks_read(struct reading *r, json_ref block);
/* Is it an array of such blocks only? */
bool blocks_are(const struct json *j, json_ref v);
/* Reads a result's value: a string, an array of blocks, or data. */
void blocks_read_output(struct reading *r, struct part *result, json_ref v);

void blocks_write(struct writer *w, const struct message *m, const struct part *p);
/* Writes `"key":value` for the output of a result. */
void blocks_write_output(
    struct writer *w, const struct message *m, const char *key, const struct part *result);

#endif
