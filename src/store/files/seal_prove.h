/*
 * seal_prove.h - the proof that a record is in a sealed conversation.
 *
 *   {"record":C,"index":N,"size":N,"hashes":[base64],"checkpoint":"the signed note"}
 *
 * `record` is C of model/leaf.h as a string; of a purged record it is null, and `leaf` (hex) says
 * what is left. Whoever has the proof and the public key needs nothing else.
 */
#ifndef STORE_FILES_SEAL_PROVE_H
#define STORE_FILES_SEAL_PROVE_H

#include "store/files/seal.h"

/* Writes it. STENO_ENOTFOUND: the seq is not sealed; STENO_ECORRUPT: it is not what was sealed. */
int seal_prove(struct files_conv *conv, uint64_t seq, struct buf *out, struct steno_error *err);

#endif
