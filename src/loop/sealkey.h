/*
 * sealkey.h - the key that seals are signed with: $STENO_SEAL_KEY (the key itself, or the path of a
 * file that has it), else seal.key in the user's configuration, which commands that a model runs
 * cannot reach. It is never in a store, a bundle or a backup.
 */
#ifndef LOOP_SEALKEY_H
#define LOOP_SEALKEY_H

#include "steno.h"

/* Its text, freed with sealkey_free(). STENO_ENOTFOUND: there is none. STENO_EDENIED: others can
 * read the file. */
int sealkey_load(const char *const *env, char **text, struct steno_error *err);
/* Overwrites it first. NULL is fine. */
void sealkey_free(char *text);
/* Writes a key to seal.key, with mode 0600. *path says where, freed with free(). STENO_ECONFLICT:
 * there is one. */
int sealkey_save(const char *const *env, const char *text, char **path, struct steno_error *err);

#endif
