/*
 * file_url.h - the paths in file: URLs, with their escapes (RFC 8089).
 */
#ifndef BASE_FILE_URL_H
#define BASE_FILE_URL_H

#include <stdbool.h>

#include "base/buf.h"
#include "steno.h"

bool file_url_is(const char *text);

/* The path of a file: URL, owned by the caller; any other text is a path as it stands.
 * STENO_EINVAL: another host than localhost, a broken escape, a NUL. */
int file_url_path(const char *url, char **path, struct steno_error *err);

/* Appends the file: URL of a path, with escapes for characters that SQLite and others would not
 * read as part of it. */
void file_url_put(struct buf *out, const char *path);

#endif
