/* sieve_none.c - replaces sieve_hs.c on a machine without Hyperscan. */
#include "output/sieve.h"

struct sieve *sieve_new(struct str pattern, const struct sieve_mode *mode)
{
        (void)pattern, (void)mode;
        return NULL;
}

void sieve_free(struct sieve *s)
{
        (void)s;
}

int sieve_lines(struct sieve *s, const char *p, size_t n, const uint32_t **at)
{
        (void)s, (void)p, (void)n, (void)at;
        return -1;
}

bool sieve_has(struct sieve *s, const char *p, size_t n)
{
        (void)s, (void)p, (void)n;
        return true;
}
