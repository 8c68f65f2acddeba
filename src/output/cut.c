/* cut.c - see cut.h */
#include "output/cut.h"

#include <string.h>

#include "base/text.h"

#define CHAIN_MAX 256 /* a longer grapheme is cut inside */

struct range {
        uint32_t first;
        uint32_t last;
};

/* The combining marks of common scripts, joiners, variation selectors, skin tones and tags. */
static const struct range extenders[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
    {0x05BF, 0x05BF}, {0x05C1, 0x05C2}, {0x05C4, 0x05C5}, {0x05C7, 0x05C7}, {0x0610, 0x061A},
    {0x064B, 0x065F}, {0x0670, 0x0670}, {0x06D6, 0x06DC}, {0x06DF, 0x06E4}, {0x06E7, 0x06E8},
    {0x06EA, 0x06ED}, {0x0711, 0x0711}, {0x0730, 0x074A}, {0x07A6, 0x07B0}, {0x07EB, 0x07F3},
    {0x0816, 0x082D}, {0x0859, 0x085B}, {0x08D3, 0x0903}, {0x093A, 0x093C}, {0x093E, 0x094F},
    {0x0951, 0x0957}, {0x0962, 0x0963}, {0x0981, 0x0983}, {0x09BC, 0x09BC}, {0x09BE, 0x09CD},
    {0x09D7, 0x09D7}, {0x0A01, 0x0A03}, {0x0A3C, 0x0A51}, {0x0A70, 0x0A71}, {0x0A81, 0x0A83},
    {0x0ABC, 0x0ABC}, {0x0ABE, 0x0ACD}, {0x0B01, 0x0B03}, {0x0B3C, 0x0B3C}, {0x0B3E, 0x0B57},
    {0x0B82, 0x0B82}, {0x0BBE, 0x0BCD}, {0x0BD7, 0x0BD7}, {0x0C00, 0x0C04}, {0x0C3E, 0x0C56},
    {0x0C81, 0x0C83}, {0x0CBC, 0x0CBC}, {0x0CBE, 0x0CD6}, {0x0D00, 0x0D03}, {0x0D3B, 0x0D3C},
    {0x0D3E, 0x0D4D}, {0x0D57, 0x0D57}, {0x0DCA, 0x0DDF}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},
    {0x0E47, 0x0E4E}, {0x0EB1, 0x0EB1}, {0x0EB4, 0x0EBC}, {0x0EC8, 0x0ECD}, {0x0F18, 0x0F19},
    {0x0F35, 0x0F35}, {0x0F37, 0x0F37}, {0x0F39, 0x0F39}, {0x0F71, 0x0F84}, {0x0F86, 0x0F87},
    {0x0F8D, 0x0FBC}, {0x102B, 0x103E}, {0x1056, 0x1059}, {0x1160, 0x11FF}, {0x135D, 0x135F},
    {0x17B4, 0x17D3}, {0x180B, 0x180D}, {0x1AB0, 0x1AFF}, {0x1B00, 0x1B04}, {0x1B34, 0x1B44},
    {0x1DC0, 0x1DFF}, {0x200C, 0x200D}, {0x20D0, 0x20F0}, {0x2CEF, 0x2CF1}, {0x302A, 0x302F},
    {0x3099, 0x309A}, {0xA66F, 0xA672}, {0xA674, 0xA67D}, {0xA8E0, 0xA8F1}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0x1D165, 0x1D169}, {0x1D16D, 0x1D172}, {0x1F3FB, 0x1F3FF},
    {0xE0020, 0xE007F}, {0xE0100, 0xE01EF}};

/* Does this code point belong to the one before it? */
static bool extends(uint32_t cp)
{
        size_t lo = 0;
        size_t hi = sizeof(extenders) / sizeof(extenders[0]);
        if (cp < extenders[0].first)
                return false;
        while (lo < hi) {
                size_t mid = (lo + hi) / 2;
                if (cp > extenders[mid].last)
                        lo = mid + 1;
                else if (cp < extenders[mid].first)
                        hi = mid;
                else
                        return true;
        }
        return false;
}

static bool is_flag_letter(uint32_t cp)
{
        return cp >= 0x1F1E6 && cp <= 0x1F1FF;
}

/* Returns the code point that ends at `at`; *start is where it begins. */
static uint32_t code_before(const char *p, size_t at, size_t *start)
{
        uint32_t cp = 0;
        size_t from = text_floor(p, at, at - 1);
        text_decode(p + from, at - from, &cp);
        *start = from;
        return cp;
}

/* Flags are pairs of letters: a cut is inside a flag if an odd number of letters is before it. */
static bool splits_flag(const char *p, size_t at)
{
        size_t letters = 0;
        size_t i = at;
        while (i > 0 && at - i < CHAIN_MAX) {
                size_t start = i;
                if (!is_flag_letter(code_before(p, i, &start)))
                        break;
                letters++;
                i = start;
        }
        return letters % 2 == 1;
}

static bool splits_grapheme(const char *p, size_t n, size_t at)
{
        uint32_t next = 0;
        size_t start = at;
        text_decode(p + at, n - at, &next);
        if (next < 0x300)
                return false;
        if (extends(next))
                return true;
        uint32_t previous = code_before(p, at, &start);
        if (previous == 0x200D)
                return true;
        return is_flag_letter(next) && is_flag_letter(previous) && splits_flag(p, at);
}

static bool is_hex(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Returns the length of the escape whose backslash is at p[i]. */
static size_t escape_length(const char *p, size_t n, size_t i)
{
        size_t digits = 0;
        size_t want = 0;
        if (i + 1 >= n)
                return 1;
        if (p[i + 1] == 'u')
                want = 4;
        else if (p[i + 1] == 'x')
                want = 2;
        while (digits < want && i + 2 + digits < n && is_hex(p[i + 2 + digits]))
                digits++;
        return 2 + digits;
}

static bool is_escaped_surrogate(const char *p, size_t n, size_t i, const char *letters)
{
        return i + 6 <= n && p[i] == '\\' && p[i + 1] == 'u' && (p[i + 2] | 0x20) == 'd' &&
               p[i + 3] != 0 && strchr(letters, p[i + 3]) != NULL;
}

/* Is the backslash at p[i] escaped by a backslash before it? */
static bool is_escaped(const char *p, size_t i)
{
        size_t run = 0;
        while (run < i && run < CHAIN_MAX && p[i - 1 - run] == '\\')
                run++;
        return run % 2 == 1;
}

static bool splits_escape(const char *p, size_t n, size_t at)
{
        size_t lowest = at > 6 ? at - 6 : 0;
        for (size_t i = at; i-- > lowest;) {
                if (p[i] != '\\' || is_escaped(p, i))
                        continue;
                if (i + escape_length(p, n, i) > at)
                        return true;
                return i + 6 == at && is_escaped_surrogate(p, n, i, "89aAbB") &&
                       is_escaped_surrogate(p, n, at, "cCdDeEfF");
        }
        return false;
}

/* Returns the end of the terminal sequence whose ESC is at p[i], or n if the sequence does not
 * end. */
static size_t sequence_end(const char *p, size_t n, size_t i)
{
        if (i + 1 >= n)
                return n;
        char kind = p[i + 1];
        if (kind != '[' && kind != ']' && kind != 'P' && kind != '^' && kind != '_')
                return i + 2;
        for (size_t k = i + 2; k < n && k - i < CHAIN_MAX; k++) {
                if (kind == '[' && p[k] >= 0x40 && p[k] <= 0x7E)
                        return k + 1;
                if (kind != '[' && p[k] == 0x07)
                        return k + 1;
                if (kind != '[' && p[k] == '\\' && p[k - 1] == 0x1B)
                        return k + 1;
        }
        return n;
}

static bool splits_sequence(const char *p, size_t n, size_t at)
{
        size_t lowest = at > CHAIN_MAX ? at - CHAIN_MAX : 0;
        const char *esc = memrchr(p + lowest, 0x1B, at - lowest);
        return esc && sequence_end(p, n, (size_t)(esc - p)) > at;
}

static bool splits(const char *p, size_t n, size_t at)
{
        return splits_sequence(p, n, at) || splits_escape(p, n, at) || splits_grapheme(p, n, at);
}

size_t cut_before(const char *p, size_t n, size_t at)
{
        if (at >= n)
                return n;
        size_t k = text_floor(p, n, at);
        size_t first = k;
        while (k > 0 && first - k < CHAIN_MAX && splits(p, n, k))
                k = text_floor(p, n, k - 1);
        return k > 0 && splits(p, n, k) ? first : k;
}

size_t cut_after(const char *p, size_t n, size_t at)
{
        if (at == 0 || at >= n)
                return at == 0 ? 0 : n;
        size_t k = text_ceil(p, n, at);
        size_t first = k;
        while (k < n && k > 0 && k - first < CHAIN_MAX && splits(p, n, k))
                k = text_ceil(p, n, k + 1);
        return k < n && k - first >= CHAIN_MAX ? first : k;
}
