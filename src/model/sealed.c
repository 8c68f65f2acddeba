/* sealed.c - see sealed.h */
#include "model/sealed.h"

#include <string.h>

#include "base/hash.h"

/* `,"crc":"9ae0daaf"}` */
#define SEAL 18
#define CRC_AT 8

static const char HEX[] = "0123456789abcdef";

void sealed_finish(struct buf *out, size_t start)
{
        if (out->failed)
                return;
        uint32_t crc = hash_crc32c(0, out->p + start, out->n - start);
        char seal[SEAL + 1] = ",\"crc\":\"00000000\"}\n";
        for (int i = 7; i >= 0; i--, crc >>= 4)
                seal[CRC_AT + i] = HEX[crc & 15];
        buf_put(out, seal, sizeof seal);
}

bool sealed_body(struct str line, struct sealed *s)
{
        if (line.n < SEAL || line.p[line.n - 1] != '}')
                return false;
        *s = (struct sealed){line.p, line.p + line.n - SEAL};
        return true;
}

bool sealed_check(struct str line)
{
        if (line.n < SEAL)
                return false;
        const char *seal = line.p + line.n - SEAL;
        if (memcmp(seal, ",\"crc\":\"", CRC_AT) != 0 || memcmp(seal + 16, "\"}", 2) != 0)
                return false;
        uint32_t crc = hash_crc32c(0, line.p, line.n - SEAL);
        for (int i = 7; i >= 0; i--, crc >>= 4)
                if (seal[CRC_AT + i] != HEX[crc & 15])
                        return false;
        return true;
}
