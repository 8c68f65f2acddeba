/*
 * bench_tokens - how fast tokens are counted, by kind of text. One JSON line each.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "view/tokens.h"

#define TEXT_SIZE ((size_t)1 << 20)
#define ROUNDS 5

static const struct sample {
        const char *name;
        const char *unit; /* repeated to TEXT_SIZE */
} samples[] = {
    {"prose", "The quick brown fox didn't jump over the lazy dog, which surprised everybody. "},
    {"code", "        if (parts.joined[i] < parts.joined[best])\n                best = i;\n"},
    {"json",
        "{\"id\":\"call_8f3a\",\"type\":\"function\",\"arguments\":\"{\\\"path\\\":1843220}\"},\n"},
    {"cjk", "\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xa4\xa9\xe6\xb0\x94\xe5\xbe\x88\xe5\xa5\xbd\xef\xbc\x8c"
            "\xe6\x88\x91\xe4\xbb\xac\xe5\x8e\xbb\xe5\x85\xac\xe5\x9b\xad\xe3\x80\x82"},
    {"one_letter", "a"},
    {"blanks", " "},
    {"not_utf8", "\xff"},
};

static int64_t now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void bench_sample(const struct sample *s, char *text)
{
        size_t unit = strlen(s->unit);
        for (size_t i = 0; i < TEXT_SIZE; i++)
                text[i] = s->unit[i % unit];
        int64_t best = INT64_MAX;
        size_t count = 0;
        for (int round = 0; round < ROUNDS; round++) {
                int64_t start = now_ns();
                count = tokens_count(text, TEXT_SIZE);
                int64_t took = now_ns() - start;
                best = took < best ? took : best;
        }
        printf("{\"bench\":\"tokens\",\"text\":\"%s\",\"exact\":%s,\"bytes\":%zu,\"tokens\":%zu,"
               "\"mb_per_s\":%.1f}\n",
            s->name, tokens_exact() ? "true" : "false", TEXT_SIZE, count,
            (double)TEXT_SIZE * 1e3 / (double)(best > 0 ? best : 1));
}

int main(void)
{
        char *text = malloc(TEXT_SIZE);
        if (!text)
                return 1;
        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
                bench_sample(&samples[i], text);
        free(text);
        return 0;
}
