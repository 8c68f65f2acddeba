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
        const char *unit;     /* repeated to TEXT_SIZE; NULL: random characters of `alphabet` */
        const char *alphabet; /* if NULL as well: any bytes */
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
    {"words", NULL, "etaoinshrdlcumwfgypbvk        "},
    {"base64", NULL, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"},
    {"hex", NULL, "0123456789abcdef"},
    {"chinese", NULL,
        "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年"
        "过发后作里"
        "用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心本前开但因"
        "只从想实"
        "，。"},
    {"cyrillic", NULL, "абвгдежзийклмнопрстуфхцчшщъыьэюя   "},
    {"random_bytes", NULL, NULL},
};

static double processor_s(void)
{
        struct timespec t;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t chance(uint32_t *seed)
{
        *seed = *seed * 1664525u + 1013904223u;
        return *seed >> 16;
}

/* Where the characters of a text begin, and where the text ends. Returns their number. */
static size_t characters(const char *text, const char *start[], size_t most)
{
        size_t n = 0;
        for (; *text && n < most; text++)
                if (((unsigned char)*text & 0xC0) != 0x80)
                        start[n++] = text;
        start[n] = text;
        return n;
}

static void fill(const struct sample *s, char *text)
{
        const char *start[257];
        size_t kinds = s->alphabet ? characters(s->alphabet, start, 256) : 0;
        size_t unit = s->unit ? strlen(s->unit) : 0;
        uint32_t seed = 1;
        for (size_t i = 0; i < TEXT_SIZE;) {
                if (kinds == 0) {
                        text[i] = unit ? s->unit[i % unit] : (char)chance(&seed);
                        i++;
                        continue;
                }
                size_t k = chance(&seed) % kinds;
                for (const char *p = start[k]; p < start[k + 1] && i < TEXT_SIZE; p++)
                        text[i++] = *p;
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
