/*
 * bench_tokens - how fast tokens are counted, by kind of text. One JSON line each: megabytes a
 * second of processor time, and the ratio to prose with its spread. The baseline, prose, runs in
 * turn with each, five times.
 */
#include <stdint.h>

#include "bench.h"
#include "view/tokens.h"

#define TEXT_SIZE ((size_t)1 << 20)
#define ROUNDS 5

static const struct sample {
        const char *name;
        const char *unit;     /* repeated to TEXT_SIZE; NULL: random bytes of `alphabet` */
        const char *alphabet; /* NULL as well: any bytes */
} samples[] = {
    {"prose", "The quick brown fox didn't jump over the lazy dog, which surprised everybody. ",
        NULL},
    {"code", "        if (parts.joined[i] < parts.joined[best])\n                best = i;\n",
        NULL},
    {"json",
        "{\"id\":\"call_8f3a\",\"type\":\"function\",\"arguments\":\"{\\\"path\\\":1843220}\"},\n",
        NULL},
    {"cjk",
        "\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xa4\xa9\xe6\xb0\x94\xe5\xbe\x88\xe5\xa5\xbd\xef\xbc\x8c"
        "\xe6\x88\x91\xe4\xbb\xac\xe5\x8e\xbb\xe5\x85\xac\xe5\x9b\xad\xe3\x80\x82",
        NULL},
    {"one_letter", "a", NULL},
    {"blanks", " ", NULL},
    {"rules", "=-", NULL},
    {"not_utf8", "\xff", NULL},
    {"random_letters", NULL, "abcdefghijklmnopqrstuvwxyz"},
    {"random_bytes", NULL, NULL},
};

static double processor_s(void)
{
        struct timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fill(const struct sample *s, char *text)
{
        uint32_t seed = 1;
        size_t unit = s->unit ? strlen(s->unit) : 1;
        for (size_t i = 0; i < TEXT_SIZE; i++) {
                seed = seed * 1664525u + 1013904223u;
                uint32_t chance = seed >> 16;
                if (s->unit)
                        text[i] = s->unit[i % unit];
                else
                        text[i] =
                            s->alphabet ? s->alphabet[chance % strlen(s->alphabet)] : (char)chance;
        }
}

/* Megabytes a second. */
static double rate(const char *text, size_t *count)
{
        double start = processor_s();
        *count = tokens_count(text, TEXT_SIZE);
        double took = processor_s() - start;
        return (double)TEXT_SIZE / 1e6 / (took > 0 ? took : 1e-9);
}

static void bench_sample(const struct sample *s, const char *prose, char *text)
{
        double rates[ROUNDS], ratios[ROUNDS];
        size_t count = 0, ignored;
        fill(s, text);
        for (int round = 0; round < ROUNDS; round++) {
                double base = rate(prose, &ignored);
                rates[round] = rate(text, &count);
                ratios[round] = rates[round] / base;
        }
        double mid = median(ratios, ROUNDS); /* which sorts them */
        printf("{\"bench\":\"tokens\",\"text\":\"%s\",\"exact\":%s,\"bytes\":%zu,\"tokens\":%zu,"
               "\"mb_per_s\":%.1f,\"ratio\":%.2f,\"ratio_min\":%.2f,\"ratio_max\":%.2f,"
               "\"baseline\":\"prose\"}\n",
            s->name, tokens_exact() ? "true" : "false", TEXT_SIZE, count, median(rates, ROUNDS),
            mid, ratios[0], ratios[ROUNDS - 1]);
}

int main(void)
{
        char *prose = malloc(TEXT_SIZE);
        char *text = malloc(TEXT_SIZE);
        if (!prose || !text)
                die("memory", "there is none");
        fill(&samples[0], prose);
        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
                bench_sample(&samples[i], prose, text);
        free(text);
        free(prose);
        return 0;
}
