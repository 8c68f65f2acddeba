/* composed.c - see composed.h */
#include "base/composed.h"

#include <stdlib.h>
#include <string.h>

struct care {
        uint32_t first;
        uint32_t last;
        uint32_t mark; /* combining class, or 0 */
};

struct split {
        uint32_t c;
        uint32_t first;
        uint32_t second; /* 0: only spelled otherwise */
};

#include "base/composed_tables.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Hangul: a syllable is made of two or three letters by their numbers. */
#define L_FIRST 0x1100u
#define V_FIRST 0x1161u
#define T_FIRST 0x11A7u
#define S_FIRST 0xAC00u
#define L_COUNT 19
#define V_COUNT 21
#define T_COUNT 28
#define S_COUNT (L_COUNT * V_COUNT * T_COUNT)

static int by_range(const void *key, const void *entry)
{
        const uint32_t *c = key;
        const struct care *care = entry;
        return *c < care->first ? -1 : *c > care->last;
}

static const struct care *find_care(uint32_t c)
{
        return bsearch(&c, CARE, COUNT(CARE), sizeof *CARE, by_range);
}

bool composed_is_care(uint32_t c)
{
        return c >= CARE[0].first && find_care(c);
}

static uint32_t mark_of(uint32_t c)
{
        const struct care *found = c < CARE[0].first ? NULL : find_care(c);
        return found ? found->mark : 0;
}

bool composed_is_mark(uint32_t c)
{
        return mark_of(c) != 0;
}

/* ---- taking apart ---- */

static int by_character(const void *key, const void *entry)
{
        const uint32_t *c = key;
        const struct split *split = entry;
        return *c < split->c ? -1 : *c > split->c;
}

static const struct split *find_split(uint32_t c)
{
        return bsearch(&c, SPLIT, COUNT(SPLIT), sizeof *SPLIT, by_character);
}

/* Only the first of two can be taken apart further. At most four characters. */
static size_t take_apart(uint32_t c, uint32_t out[4])
{
        uint32_t behind[4];
        size_t n = 0, count = 0;
        const struct split *s;
        if (c - S_FIRST < S_COUNT) {
                uint32_t at = c - S_FIRST;
                out[0] = L_FIRST + at / (V_COUNT * T_COUNT);
                out[1] = V_FIRST + at / T_COUNT % V_COUNT;
                out[2] = T_FIRST + at % T_COUNT;
                return at % T_COUNT ? 3 : 2;
        }
        while ((s = find_split(c)) && n < 3) {
                c = s->first;
                if (s->second)
                        behind[n++] = s->second;
        }
        out[count++] = c;
        while (n)
                out[count++] = behind[--n];
        return count;
}

/* Of what NFC replaces, most begins a cluster of its own: U+2000 is a space. */
bool composed_joins(uint32_t c)
{
        uint32_t parts[4];
        if (!composed_is_care(c))
                return false;
        take_apart(c, parts);
        return composed_is_care(parts[0]);
}

/* Marks of different classes may stand in any order; they get theirs. */
static void sort_marks(uint32_t *c, size_t n)
{
        for (size_t i = 1; i < n; i++) {
                uint32_t mark = mark_of(c[i]), x = c[i];
                size_t at = i;
                for (; mark && at && mark_of(c[at - 1]) > mark; at--)
                        c[at] = c[at - 1];
                c[at] = x;
        }
}

/* ---- putting together ---- */

/* The character that two are; 0: they are two. */
static uint32_t join(uint32_t a, uint32_t b)
{
        size_t low = 0, high = COUNT(JOIN);
        if (a - L_FIRST < L_COUNT && b - V_FIRST < V_COUNT)
                return S_FIRST + ((a - L_FIRST) * V_COUNT + (b - V_FIRST)) * T_COUNT;
        if (a - S_FIRST < S_COUNT && (a - S_FIRST) % T_COUNT == 0 && b - T_FIRST - 1 < T_COUNT - 1)
                return a + (b - T_FIRST);
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                const struct split *s = &SPLIT[JOIN[middle]];
                if (s->first == a && s->second == b)
                        return s->c;
                if (s->first < a || (s->first == a && s->second < b))
                        low = middle + 1;
                else
                        high = middle;
        }
        return 0;
}

/* What stands between two that are put together must be marks of a lower class. */
static size_t put_together(uint32_t *c, size_t n)
{
        size_t count = 0, base = SIZE_MAX;
        for (size_t i = 0; i < n; i++) {
                uint32_t mark = mark_of(c[i]);
                bool near = base != SIZE_MAX && (count == base + 1 || mark_of(c[count - 1]) < mark);
                uint32_t one = near ? join(c[base], c[i]) : 0;
                if (one) {
                        c[base] = one;
                        continue;
                }
                if (!mark)
                        base = count;
                c[count++] = c[i];
        }
        return count;
}

size_t composed(uint32_t c[COMPOSED_ROOM], size_t n)
{
        uint32_t parts[COMPOSED_ROOM];
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
                count += take_apart(c[i], parts + count);
        sort_marks(parts, count);
        memcpy(c, parts, count * sizeof *parts);
        return put_together(c, count);
}
