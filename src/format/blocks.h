/*
 * blocks.h - media and results in the shapes of our own that formats without one for them share
 * (toolmessage, chat, legacy): {"type":"image"|"audio"|"file","mimeType","data"|"url","name"},
 * {"type":"text","text"}. Used inside format/ only.
 */
#ifndef FORMAT_BLOCKS_H
#define FORMAT_BLOCKS_H

#include "format/format.h"
#include "format/reading.h"

/* A text or media block, else opaque. */
void blocks_read(struct reading *r, json_ref block);
/* Is it an array of nothing but such blocks? */
bool blocks_are(const struct json *j, json_ref v);
/* A result's value: a string, an array of blocks, or data. */
void blocks_read_output(struct reading *r, struct part *result, json_ref v);

void blocks_write(struct writer *w, const struct message *m, const struct part *p);
/* `"key":value` of what a result says. */
void blocks_write_output(
    struct writer *w, const struct message *m, const char *key, const struct part *result);

#endif
