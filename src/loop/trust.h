/*
 * trust.h - which steno.json files a person has looked at.
 *
 * trusted.json in Steno's configuration directory (0600) holds {"files":{PATH:SHA256}}. Trust is
 * bound to the exact bytes and the exact path: a file that was changed, moved or copied is no
 * longer trusted. A symbolic link in place of the file is never trusted, because the programs that
 * it names would be in another folder than the one that the person looked at. Folders above it may
 * be links.
 */
#ifndef LOOP_TRUST_H
#define LOOP_TRUST_H

#include <stdbool.h>

#include "base/str.h"
#include "steno.h"

/* Is this file a symbolic link, which cannot be trusted? */
bool trust_is_link(const char *path);

/* Is `text`, found at `path`, trusted? `home` is what config_home() gave. False in case of
 * doubt. */
bool trust_holds(const char *home, const char *path, struct str text, struct steno_error *err);

/* Trusts a file as it is now; with *hash (may be NULL, freed with free()) the sum it has. */
int trust_record(const char *home, const char *path, char **hash, struct steno_error *err);
/* Removes the trust. It is not an error if there was none. */
int trust_forget(const char *home, const char *path, struct steno_error *err);

#endif
