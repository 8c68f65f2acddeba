/*
 * json_stream.h - is a stream of bytes one JSON document? Constant memory, any split.
 *
 * For outputs that are too large to be held in memory. Checks the grammar and the depth; UTF-8 is
 * checked elsewhere (text_utf8_feed). All zero is not a start: use json_stream_init.
 */
#ifndef BASE_JSON_STREAM_H
#define BASE_JSON_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

struct json_stream {
        uint8_t state;
        uint8_t hex;         /* digits of \uXXXX still to come */
        const char *literal; /* rest of true, false or null */
        uint32_t depth;
        uint64_t object[(JSON_DEPTH_MAX + 63) / 64]; /* per level: an object, else an array */
};

void json_stream_init(struct json_stream *s);
/* False as soon as it cannot be JSON any more; from then on, feeding costs nothing. */
bool json_stream_feed(struct json_stream *s, const char *p, size_t n);
/* Is the next byte inside a string? */
bool json_stream_in_string(const struct json_stream *s);
/*
 * Feeds at least one byte, and stops behind the one that leaves every string and every level deeper
 * than `depth`. How many bytes were fed; fewer than n may also mean that it is not JSON, which the
 * next feed says.
 */
size_t json_stream_feed_to(struct json_stream *s, uint32_t depth, const char *p, size_t n);
/* Was it a whole document? */
bool json_stream_finish(const struct json_stream *s);

#endif
