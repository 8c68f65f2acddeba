/*
 * ed25519.h - Ed25519 signatures (libcrypto).
 *
 * Knows bytes only: what is signed, and how a key is kept, is model/note.h's.
 */
#ifndef BASE_ED25519_H
#define BASE_ED25519_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

#define ED25519_SEED 32      /* the private key, as RFC 8032 has it */
#define ED25519_PUBLIC 32    /* the public key */
#define ED25519_SIGNATURE 64 /* a signature */

/* The public key of a private one. 0 or STENO_ENOMEM. */
int ed25519_public(const unsigned char seed[ED25519_SEED], unsigned char out[ED25519_PUBLIC]);
/* Signs `text`. 0 or STENO_ENOMEM. */
int ed25519_make(
    const unsigned char seed[ED25519_SEED], struct str text, unsigned char out[ED25519_SIGNATURE]);
/* 1: the signature is of this key and text; 0: it is not; STENO_ENOMEM. */
int ed25519_check(const unsigned char key[ED25519_PUBLIC], struct str text,
    const unsigned char signature[ED25519_SIGNATURE]);
/* Overwrites a secret, also where the compiler thinks that nobody reads it again. */
void ed25519_wipe(void *p, size_t n);

#endif
