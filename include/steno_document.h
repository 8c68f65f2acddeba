/*
 * steno_document.h - small texts that belong to a store, for those who serve it: tokens, keys.
 */
#ifndef STENO_DOCUMENT_H
#define STENO_DOCUMENT_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of them, freed with steno_free(); a NUL follows. *stamp (may be NULL) is another number
 * whenever it has changed. STENO_ENOTFOUND: there is none. STENO_ELIMIT: it has more than `max`
 * bytes. A name has letters, digits, "." and "-". */
STENO_API int steno_document_read(struct steno_store *store, const char *name, size_t max,
    char **text, size_t *n, uint64_t *stamp, struct steno_error *err);
/* Only the stamp, which costs little; 0: there is none. */
STENO_API int steno_document_stamp(
    struct steno_store *store, const char *name, uint64_t *stamp, struct steno_error *err);
/* Makes *text, which malloc() gave, of what there is (n is 0 where there is none). It may be called
 * again when somebody was quicker. Non-zero ends it. */
typedef int (*steno_document_fn)(
    void *ctx, const char *old, size_t n, char **text, size_t *text_n, struct steno_error *err);
/* Nobody else's change is lost, whatever process or machine it comes from. STENO_ETIMEOUT: others
 * had it for longer than `patience_ms`. One thread of a process at a time. */
STENO_API int steno_document_change(struct steno_store *store, const char *name, size_t max,
    int patience_ms, steno_document_fn change, void *ctx, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
