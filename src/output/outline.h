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
 * The text is read once, with constant memory. All elements of arrays are counted, but only the
 * first OUTLINE_SAMPLE elements are searched for keys (types that appear later are still named). A
 * key that some of these elements lack has a question mark. Depth, keys and bytes are limited, and
 * the same text always gives the same outline.
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
 * Appends the outline of the document that fills `text`. Returns false and appends nothing if the
 * text is not JSON (the check is loose; base/json.h is strict), nests deeper than JSON_DEPTH_MAX,
 * or memory is out. If the outline is larger than `max_bytes`, its end is left out, and a line says
 * so.
 */
bool outline_put(struct buf *out, struct str text, size_t max_bytes);

#endif
