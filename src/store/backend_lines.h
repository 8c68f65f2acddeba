/*
 * backend_lines.h - the lines of journals and of manifests, as bundles have them (docs/format.md).
 * For those who write a kind of store. Knows nothing of where they are kept.
 */
#ifndef STORE_BACKEND_LINES_H
#define STORE_BACKEND_LINES_H

#include "base/buf.h"
#include "base/json.h"
#include "store/backend_outputs.h"
#include "store/backend_runs.h"

/* Appends the line of an event, and its line feed. */
void backend_event_put(struct buf *out, const struct run_event *e);
/* Reads a line without its line feed and verifies its checksum. False: it is damaged. */
bool backend_event_read(struct str line, struct run_event *out);

/* The line for an output as `info` says, without a line feed. */
void backend_manifest_put(struct buf *out, const struct artifact_info *info);
/* One line: 1, 0 when it cannot be read, or STENO_ENOMEM. */
int backend_manifest_read(struct json *j, struct str line, struct artifact_info *out);

#endif
