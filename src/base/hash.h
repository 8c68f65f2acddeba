/*
 * hash.h - CRC-32C for records, SHA-256 for contents, a fast 64-bit hash for tables.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Castagnoli, as iSCSI and ext4 use it; hardware instructions where the machine has them.
 * Continue a sum by passing the previous result; start with 0. */
uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n);
/* The fallbacks for machines without wide multiplication, and by tables for machines without the
 * CRC instruction. They have names so that tests can compare all answers. */
uint32_t hash_crc32c_baseline(uint32_t crc, const void *p, size_t n);
uint32_t hash_crc32c_portable(uint32_t crc, const void *p, size_t n);

/* FNV over words with a strong finish; stable for ever, because ids.idx stores it. */
uint64_t hash_64(const void *p, size_t n);

#define SHA256_SIZE 32
#define SHA256_HEX 65 /* with its NUL */

struct sha256 {
        void *ctx;
};

/* 0, or STENO_ENOMEM: then the other calls do nothing and finish gives zeros. */
int hash_sha256_init(struct sha256 *s);
void hash_sha256_update(struct sha256 *s, const void *p, size_t n);
/* Also releases. */
void hash_sha256_finish(struct sha256 *s, unsigned char out[SHA256_SIZE]);
void hash_sha256_release(struct sha256 *s);
/* The sum so far; more may follow. */
void hash_sha256_peek(const struct sha256 *s, unsigned char out[SHA256_SIZE]);
/* Gives the sum and starts the next one, for many short texts. False on failure; `out` is zeros
 * then. */
bool hash_sha256_take(struct sha256 *s, unsigned char out[SHA256_SIZE]);
/* The whole at once, as lower-case hex. */
int hash_sha256_hex(const void *p, size_t n, char out[SHA256_HEX]);
void hash_hex(const unsigned char *p, size_t n, char *out /* 2n+1 */);

#endif
