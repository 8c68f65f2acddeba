/* api_count_tokens.c - steno_count_tokens of steno.h. */
#include "steno.h"
#include "view/tokens.h"

uint64_t steno_count_tokens(const char *text, size_t n, bool *exact)
{
        if (exact)
                *exact = tokens_exact();
        return tokens_count(text, n);
}
