/* percent.c - see percent.h */
#include "base/percent.h"

static int nibble(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 32;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool percent_decode(struct arena *arena, struct str s, bool plus, struct str *out)
{
        char *p = arena_alloc(arena, s.n + 1);
        size_t n = 0;
        if (!p)
                return false;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '\0')
                        return false;
                if (s.p[i] != '%') {
                        p[n++] = plus && s.p[i] == '+' ? ' ' : s.p[i];
                        continue;
                }
                int hi = i + 1 < s.n ? nibble(s.p[i + 1]) : -1;
                int lo = i + 2 < s.n ? nibble(s.p[i + 2]) : -1;
                if (hi < 0 || lo < 0 || (hi == 0 && lo == 0))
                        return false;
                p[n++] = (char)(hi << 4 | lo);
                i += 2;
        }
        p[n] = '\0';
        *out = str_span(p, n);
        return true;
}
