/* casefold.c - see casefold.h */
#include "base/casefold.h"

#include <stddef.h>

struct range {
        uint32_t first;
        uint32_t last;
        uint32_t step; /* from the first one on, only each of these */
        int32_t add;
};

/* In order. */
static const struct range RANGES[] = {
#include "base/casefold_ranges.h"
};

uint32_t casefold(uint32_t c)
{
        size_t low = 0, high = sizeof RANGES / sizeof *RANGES;
        if (c < 0x80)
                return c >= 'A' && c <= 'Z' ? c + 32 : c;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                if (c > RANGES[middle].last)
                        low = middle + 1;
                else
                        high = middle;
        }
        const struct range *r = &RANGES[low];
        if (low == sizeof RANGES / sizeof *RANGES || c < r->first || (c - r->first) % r->step)
                return c;
        return (uint32_t)((int32_t)c + r->add);
}
