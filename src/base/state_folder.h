/*
 * state_folder.h - the folder on this machine where a program keeps files that belong to one store.
 */
#ifndef BASE_STATE_FOLDER_H
#define BASE_STATE_FOLDER_H

#include "steno.h"

/* The store's own folder. A store without one, such as a database, has a folder of this machine
 * that is named after its URL: it is made, readable by its user alone. *path is absolute where the
 * URL is, and owned by the caller. */
int state_folder(const char *store_url, char **path, struct steno_error *err);

#endif
