/*
 * trash.h - trash/: conversations that were removed, whole, until they are restored or emptied.
 *
 *   trash/<name>/       the conversation's folder as it was
 *   trash/<name>.json   {"project","id","folder","deletedAt"}
 *   trash/.gone-<name>  being removed for good
 *
 * <name> is a ULID, so that one id can be removed, made and removed again.
 *
 *   T1  A folder comes here, and goes back, by one rename under its lock: nobody writes to what
 *       is here, and an append that waited for the lock finds the conversation removed (S2).
 *   T2  The note is synced before the folder comes. A note without a folder means nothing; a
 *       folder without a note is still listed, by its meta.json.
 *   T3  A folder that is removed for good is renamed first, so that half of it is never restored.
 */
#ifndef STORE_FILES_TRASH_H
#define STORE_FILES_TRASH_H

#include "store/files/files.h"

/* Moves a conversation to the trash, as `name`. Waits for a running append. */
int trash_put(struct files_conv *conv, char name[TRASH_NAME], struct steno_error *err);
/* The text of a note. */
void trash_note_put(struct buf *out, const struct trash_item *item);
/* What is here. `sizes` counts the bytes of each, which walks all of it. */
int trash_list_read(
    struct files_store *store, bool sizes, struct trash_list *out, struct steno_error *err);
/* Moves one back to its place, or to that of the id `as` (may be NULL). STENO_ECONFLICT: the id is
 * in use. STENO_ENOTFOUND: it has left the trash meanwhile. */
int trash_put_back(struct files_store *store, const struct trash_item *item, const char *as,
    struct steno_error *err);
/* Removes one for good. */
int trash_destroy(
    struct files_store *store, const struct trash_item *item, struct steno_error *err);
/* Finishes what an earlier destruction left. */
int trash_sweep(struct files_store *store, struct steno_error *err);

#endif
