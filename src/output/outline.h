/*
 * outline.h - the shape of a JSON document: keys, array lengths, types.
 *
 *         object, 2 keys
 *           items: array[52,431] of object
 *             id: number
 *             note?: string | null
 *             tags: array[0-5] of string
 *           total: number
 *
 * One pass over the text with constant memory: arrays are counted whole, but only their first
 * OUTLINE_SAMPLE elements tell keys and types (a type that appears later is still named). A key
 * that some sampled elements lack has a question mark. Bounded in depth, keys and bytes, and
 * the same for the same text.
 */
#ifndef OUTPUT_OUTLINE_H
#define OUTPUT_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define OUTLINE_DEPTH 4
#define OUTLINE_KEYS 24 /* of one object */
#define OUTLINE_SAMPLE 16
#define OUTLINE_BYTES 1024

/*
 * Appends the outline of the document that fills `text`. False, with nothing appended, when it is
 * not JSON (checked loosely: base/json.h says strictly), nests deeper than JSON_DEPTH_MAX, or
 * memory is out. What does not fit `max_bytes` is left out from the end, with a line that says so.
 */
bool outline_put(struct buf *out, struct str text, size_t max_bytes);

#endif
