/*
 * count_tokens - answers tokens.test and bench/tokens.mjs.
 *
 * Reads texts from standard input, each after its length (32 bits, little-endian), and prints the
 * token count of each on a line. The first line is "exact" or "estimate". With -t the last line
 * is the time in nanoseconds that counting took, reading and printing left out.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "view/tokens.h"

static int64_t now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool read_length(size_t *n)
{
        unsigned char b[4];
        if (fread(b, 1, 4, stdin) != 4)
                return false;
        *n = (size_t)b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
        return true;
}

int main(int argc, char **argv)
{
        int64_t spent = 0;
        size_t n;
        puts(tokens_exact() ? "exact" : "estimate");
        while (read_length(&n)) {
                /* Exactly as large as the text, so that a sanitizer sees a read past its end. */
                char *text = malloc(n ? n : 1);
                if (!text || fread(text, 1, n, stdin) != n) {
                        fputs("count_tokens: input ends early\n", stderr);
                        free(text);
                        return 1;
                }
                int64_t start = now_ns();
                size_t count = tokens_count(text, n);
                spent += now_ns() - start;
                printf("%zu\n", count);
                free(text);
        }
        if (argc > 1 && strcmp(argv[1], "-t") == 0)
                printf("%lld\n", (long long)spent);
        return 0;
}
