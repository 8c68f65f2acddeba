/* hash.c - see hash.h */
#include "base/hash.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/evp.h>

#include "steno.h"

/* ---- 64 bits ---- */

static uint32_t load32(const unsigned char *p)
{
        return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t load64(const unsigned char *p)
{
        return load32(p) | (uint64_t)load32(p + 4) << 32;
}

static uint64_t mix(uint64_t h)
{
        h ^= h >> 33;
        h *= 0xFF51AFD7ED558CCDu;
        h ^= h >> 33;
        h *= 0xC4CEB9FE1A85EC53u;
        h ^= h >> 33;
        return h;
}

/* FNV over words instead of bytes; a product only carries upwards, so the high half is folded
 * back after each. The tail is one word with its missing bytes zero: the length in the seed tells
 * it from the same bytes with zeros behind. */
uint64_t hash_64(const void *data, size_t n)
{
        const unsigned char *p = data;
        uint64_t h = 0xCBF29CE484222325u ^ (n * 0x9E3779B97F4A7C15u);
        for (; n >= 8; p += 8, n -= 8) {
                h = (h ^ load64(p)) * 0x00000100000001B3u;
                h ^= h >> 32;
        }
        uint64_t tail = 0;
        for (size_t i = 0; i < n; i++)
                tail |= (uint64_t)p[i] << (8 * i);
        return mix((h ^ tail) * 0x00000100000001B3u);
}

/* ---- SHA-256 ---- */

/* OpenSSL looks EVP_sha256() up by its name at each use, which takes longer than the sum of a short
 * text. What was looked up once stays for the life of the process. */
static const EVP_MD *fetched;

static void fetch(void)
{
        fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
}

static const EVP_MD *sha256(void)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, fetch);
        return fetched ? fetched : EVP_sha256();
}

int hash_sha256_init(struct sha256 *s)
{
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        if (ctx && EVP_DigestInit_ex(ctx, sha256(), NULL) != 1) {
                EVP_MD_CTX_free(ctx);
                ctx = NULL;
        }
        s->ctx = ctx;
        return ctx ? 0 : STENO_ENOMEM;
}

/* A failure is kept by dropping the context, so that finish gives zeros and not a wrong sum. */
void hash_sha256_update(struct sha256 *s, const void *p, size_t n)
{
        if (s->ctx && n && EVP_DigestUpdate(s->ctx, p, n) != 1)
                hash_sha256_release(s);
}

void hash_sha256_finish(struct sha256 *s, unsigned char out[SHA256_SIZE])
{
        if (!s->ctx || EVP_DigestFinal_ex(s->ctx, out, NULL) != 1)
                memset(out, 0, SHA256_SIZE);
        hash_sha256_release(s);
}

bool hash_sha256_take(struct sha256 *s, unsigned char out[SHA256_SIZE])
{
        if (s->ctx && EVP_DigestFinal_ex(s->ctx, out, NULL) == 1 &&
            EVP_DigestInit_ex(s->ctx, NULL, NULL) == 1)
                return true;
        hash_sha256_release(s);
        memset(out, 0, SHA256_SIZE);
        return false;
}

void hash_sha256_release(struct sha256 *s)
{
        if (!s)
                return;
        EVP_MD_CTX_free(s->ctx);
        s->ctx = NULL;
}

void hash_sha256_peek(const struct sha256 *s, unsigned char out[SHA256_SIZE])
{
        struct sha256 copy = {EVP_MD_CTX_new()};
        if (copy.ctx && s->ctx && EVP_MD_CTX_copy_ex(copy.ctx, s->ctx) != 1)
                hash_sha256_release(&copy);
        if (!s->ctx)
                hash_sha256_release(&copy);
        hash_sha256_finish(&copy, out);
}

int hash_sha256_hex(const void *p, size_t n, char out[SHA256_HEX])
{
        struct sha256 s;
        unsigned char sum[SHA256_SIZE];
        int rc = hash_sha256_init(&s);
        if (rc)
                return rc;
        hash_sha256_update(&s, p, n);
        hash_sha256_finish(&s, sum);
        hash_hex(sum, sizeof sum, out);
        return 0;
}

void hash_hex(const unsigned char *p, size_t n, char *out)
{
        static const char digits[] = "0123456789abcdef";
        for (size_t i = 0; i < n; i++) {
                *out++ = digits[p[i] >> 4];
                *out++ = digits[p[i] & 15];
        }
        *out = '\0';
}
