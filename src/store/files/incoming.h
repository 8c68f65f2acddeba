/*
 * incoming.h - conversations on their way into a store: <root>/.import-<ULID>/<number>/.
 *
 * A folder is filled here, checked, synced and then renamed to its place in one step (S1). The
 * process that fills it holds flock on .import-<ULID>. A folder without a lock was left by a
 * process that died; steno check --repair removes it.
 */
#ifndef STORE_FILES_INCOMING_H
#define STORE_FILES_INCOMING_H

#include "store/files/files.h"

#define INCOMING_PREFIX ".import-"

struct incoming {
        struct files_store *store;
        int dir; /* locked */
        char name[48];
};

int incoming_open(struct files_store *store, struct incoming *in, struct steno_error *err);
/* Removes what is still here. */
void incoming_close(struct incoming *in);

/* The number is the folder's name here. */
#define INCOMING_FOLDER 16
/* Makes an empty folder for a conversation; a descriptor or a negative code. */
int incoming_add(struct incoming *in, uint32_t number, struct steno_error *err);
/* Opens one for checking, under the names it will have. Closed with
 * files_conv_close_aside. */
int incoming_look(struct incoming *in, uint32_t number, struct str project, struct str id,
    struct files_conv **out, struct steno_error *err);
/* Syncs its folders (its files are synced by whoever wrote them) and renames it to the place of
 * this id. STENO_ECONFLICT: the id is taken. */
int incoming_install(struct incoming *in, uint32_t number, struct str project, struct str id,
    struct steno_error *err);

/* How many are left over; `remove` removes them. */
int incoming_sweep(
    struct files_store *store, bool remove, uint64_t *count, struct steno_error *err);

#endif
