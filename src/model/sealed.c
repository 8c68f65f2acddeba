/* sealed.c - see sealed.h */
#include "model/sealed.h"

#include <string.h>

#include "base/hash.h"

/* The seal at the end of a line: `,"crc":"9ae0daaf"}` */
#define CRC_AT 8

/* Writes the eight digits of a checksum at once, because every record that is read needs it. */
static void put_hex(uint32_t crc, char out[8])
{
        uint64_t v = crc;
        v = (v << 16 | v) & UINT64_C(0x0000ffff0000ffff);
        v = (v << 8 | v) & UINT64_C(0x00ff00ff00ff00ff);
        /* One hex digit in each byte, the last one lowest. */
        v = (v << 4 | v) & UINT64_C(0x0f0f0f0f0f0f0f0f);
        uint64_t letters = (v + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
        v += UINT64_C(0x3030303030303030) + letters * ('a' - '0' - 10);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        v = __builtin_bswap64(v);
#endif
        /* One copy of 8 bytes, because the caller compares 8 bytes right after this. */
        memcpy(out, &v, 8);
}

void sealed_finish(struct buf *out, size_t start)
{
        if (out->failed)
                return;
        uint32_t crc = hash_crc32c(0, out->p + start, out->n - start);
        char seal[SEALED_BYTES + 1] = ",\"crc\":\"00000000\"}\n";
        put_hex(crc, seal + CRC_AT);
        buf_put(out, seal, sizeof seal);
}

bool sealed_body(struct str line, struct sealed *s)
{
        if (line.n < SEALED_BYTES || line.p[line.n - 1] != '}')
                return false;
        *s = (struct sealed){line.p, line.p + line.n - SEALED_BYTES};
        return true;
}

bool sealed_check(struct str line)
{
        if (line.n < SEALED_BYTES)
                return false;
        const char *seal = line.p + line.n - SEALED_BYTES;
        if (memcmp(seal, ",\"crc\":\"", CRC_AT) != 0 || memcmp(seal + 16, "\"}", 2) != 0)
                return false;
        char sum[8];
        put_hex(hash_crc32c(0, line.p, line.n - SEALED_BYTES), sum);
        return memcmp(seal + CRC_AT, sum, sizeof sum) == 0;
}
