/* hash.c - see hash.h */
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>
#include <openssl/evp.h>

#include "base/crc32c_table.h"
#include "steno.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

/* ---- CRC-32C ---- */

static uint32_t load32(const unsigned char *p)
{
        return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t load64(const unsigned char *p)
{
        return load32(p) | (uint64_t)load32(p + 4) << 32;
}

uint32_t hash_crc32c_portable(uint32_t crc, const void *data, size_t n)
{
        const unsigned char *p = data;
        crc = ~crc;
        for (; n >= 8; p += 8, n -= 8) {
                uint32_t a = crc ^ load32(p);
                uint32_t b = load32(p + 4);
                crc = crc32c_table[7][a & 255] ^ crc32c_table[6][a >> 8 & 255] ^
                      crc32c_table[5][a >> 16 & 255] ^ crc32c_table[4][a >> 24] ^
                      crc32c_table[3][b & 255] ^ crc32c_table[2][b >> 8 & 255] ^
                      crc32c_table[1][b >> 16 & 255] ^ crc32c_table[0][b >> 24];
        }
        for (; n > 0; p++, n--)
                crc = crc32c_table[0][(crc ^ *p) & 255] ^ crc >> 8;
        return ~crc;
}

#if defined(__x86_64__)

/* The instruction takes three cycles and can start every cycle, so three lanes run side by side. A
 * lane's sum is moved over the lanes behind it by multiplying with x^(8 * bytes - 33): the product
 * of two reflected words is one power too high, and the instruction itself adds 32. */
#define LANE 168
#define OVER_ONE_LANE 0x1b3d8f29
#define OVER_TWO_LANES 0xa60ce07b

__attribute__((target("sse4.2,pclmul"), always_inline)) static inline uint64_t step8(
    uint64_t crc, const unsigned char *p)
{
        uint64_t v;
        memcpy(&v, p, sizeof v); /* little endian, as this processor is */
        return _mm_crc32_u64(crc, v);
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc_over(uint64_t crc, int64_t by)
{
        __m128i product =
            _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi64_si128(by), 0);
        return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t crc_lanes(
    uint64_t c, const unsigned char *p)
{
        uint64_t b = 0, d = 0;
        for (size_t i = 0; i < LANE; i += 8) {
                c = step8(c, p + i);
                b = step8(b, p + LANE + i);
                d = step8(d, p + (size_t)2 * LANE + i);
        }
        return crc_over(c, OVER_TWO_LANES) ^ crc_over(b, OVER_ONE_LANE) ^ d;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t crc_sse42(
    uint32_t crc, const void *data, size_t n)
{
        const unsigned char *p = data;
        uint64_t c = (uint32_t)~crc;
        for (; n >= (size_t)3 * LANE; p += (size_t)3 * LANE, n -= (size_t)3 * LANE)
                c = crc_lanes(c, p);
        for (; n >= 8; p += 8, n -= 8)
                c = step8(c, p);
        for (; n > 0; p++, n--)
                c = _mm_crc32_u8((uint32_t)c, *p);
        return ~(uint32_t)c;
}

uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n)
{
        if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
                return crc_sse42(crc, p, n);
        return hash_crc32c_portable(crc, p, n);
}

#else

uint32_t hash_crc32c(uint32_t crc, const void *p, size_t n)
{
        return hash_crc32c_portable(crc, p, n);
}

#endif

/* ---- 64 bits ---- */

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

int sha256_init(struct sha256 *s)
{
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        if (ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
                EVP_MD_CTX_free(ctx);
                ctx = NULL;
        }
        s->ctx = ctx;
        return ctx ? 0 : STENO_ENOMEM;
}

/* A failure is kept by dropping the context, so that finish gives zeros and not a wrong sum. */
void sha256_update(struct sha256 *s, const void *p, size_t n)
{
        if (s->ctx && n && EVP_DigestUpdate(s->ctx, p, n) != 1)
                sha256_release(s);
}

void sha256_finish(struct sha256 *s, unsigned char out[SHA256_SIZE])
{
        if (!s->ctx || EVP_DigestFinal_ex(s->ctx, out, NULL) != 1)
                memset(out, 0, SHA256_SIZE);
        sha256_release(s);
}

void sha256_release(struct sha256 *s)
{
        if (!s)
                return;
        EVP_MD_CTX_free(s->ctx);
        s->ctx = NULL;
}

int sha256_hex(const void *p, size_t n, char out[SHA256_HEX])
{
        struct sha256 s;
        unsigned char sum[SHA256_SIZE];
        int rc = sha256_init(&s);
        if (rc)
                return rc;
        sha256_update(&s, p, n);
        sha256_finish(&s, sum);
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
