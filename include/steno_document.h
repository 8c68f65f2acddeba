/*
 * steno_document.h - small texts that belong to a store, such as the tokens and keys of its
 * servers.
 */
#ifndef STENO_DOCUMENT_H
#define STENO_DOCUMENT_H

#include "steno.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads a document; *text is NUL-terminated and freed with steno_free(). *stamp (may be NULL) is a
 * number that differs whenever the document has changed. STENO_ENOTFOUND: there is none.
 * STENO_ELIMIT: it has more than `max` bytes. A name has letters, digits, "." and "-". */
STENO_API int steno_document_read(struct steno_store *store, const char *name, size_t max,
    char **text, size_t *n, uint64_t *stamp, struct steno_error *err);
/* Reads only the stamp, which costs little. It is 0 where there is no document. */
STENO_API int steno_document_stamp(
    struct steno_store *store, const char *name, uint64_t *stamp, struct steno_error *err);
/* Makes the new *text (from malloc()) from the old one; n is 0 where there is no document yet. It
 * is called again when another change came first. A non-zero return stops the change. */
typedef int (*steno_document_fn)(
    void *ctx, const char *old, size_t n, char **text, size_t *text_n, struct steno_error *err);
/* Changes a document. No change by another process or machine is lost. STENO_ETIMEOUT: others held
 * the document for longer than `patience_ms`. One thread of a process at a time. */
STENO_API int steno_document_change(struct steno_store *store, const char *name, size_t max,
    int patience_ms, steno_document_fn change, void *ctx, struct steno_error *err);

#ifdef __cplusplus
}
#endif

#endif
