/*
 * bench_json.c - how much faster JSON is checked and parsed here than by jansson.
 *
 * Two workloads on one core: chat messages as agents write them (strings of about 1 KB with line
 * breaks, quotes and some text that is not ASCII), and dense JSON of small tokens. Each message is
 * one document. Rounds are interleaved so that a machine that slows down slows all; medians of
 * five. Prints one line of JSON; the ratios at the top are those of the messages, which is
 * what a store consists of.
 */
/* jansson has some names that Steno has too; none of them is called here. */
#define JSON_NULL jansson_JSON_NULL
#define JSON_FALSE jansson_JSON_FALSE
#define JSON_TRUE jansson_JSON_TRUE
#define JSON_STRING jansson_JSON_STRING
#define JSON_ARRAY jansson_JSON_ARRAY
#define JSON_OBJECT jansson_JSON_OBJECT
#define json_type jansson_json_type
#define json_string jansson_json_string
#include <jansson.h>
#undef JSON_NULL
#undef JSON_FALSE
#undef JSON_TRUE
#undef JSON_STRING
#undef JSON_ARRAY
#undef JSON_OBJECT
#undef json_type
#undef json_string

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"
#include "bench.h"

#define ROUNDS 5

struct corpus {
        struct buf bytes;
        size_t *ends;
        size_t count;
};

static uint64_t rnd(uint64_t *s)
{
        *s ^= *s << 13;
        *s ^= *s >> 7;
        *s ^= *s << 17;
        return *s;
}

static void put_words(struct buf *b, uint64_t *s, size_t bytes)
{
        static const char *const words[] = {"the ", "conversation ", "file ", "returns ", "a ",
            "pointer ", "to ", "and ", "(size_t) ", "error ", "while ", "reading ", "message, ",
            "because ", "it ", "is ", "written ", "once. "};
        static const char *const rare[] = {"\\n", "\\n\\n", "\\\"quoted\\\" ", "\\t", "caf\u00e9 ",
            "\u2014 ", "\\u00e9t\\u00e9 ", "src\\/main.c ", "\\n    if (x == 0) {\\n        "};
        size_t end = b->n + bytes;
        while (b->n < end) {
                uint64_t r = rnd(s);
                if (r % 10 == 0)
                        buf_puts(b, rare[(r >> 8) % (sizeof rare / sizeof *rare)]);
                else
                        buf_puts(b, words[(r >> 8) % (sizeof words / sizeof *words)]);
        }
}

static void put_message(struct buf *b, uint64_t *s, size_t i)
{
        buf_printf(b,
            "{\"id\":\"msg_%08zx\",\"role\":\"%s\",\"created_at\":\"2025-06-01T12:%02zu:%02zuZ\","
            "\"content\":[{\"type\":\"text\",\"text\":\"",
            i, i % 2 ? "assistant" : "user", i / 60 % 60, i % 60);
        put_words(b, s, 600 + rnd(s) % 900);
        buf_puts(b, "\"}");
        if (i % 3 == 0) {
                buf_printf(b,
                    ",{\"type\":\"tool_use\",\"id\":\"toolu_%zu\",\"name\":\"read_file\","
                    "\"input\":{\"path\":\"src/main_%zu.c\",\"limit\":200,\"text\":\"",
                    i, i);
                put_words(b, s, 500);
                buf_puts(b, "\"}}");
        }
        buf_printf(b,
            "],\"usage\":{\"input_tokens\":%zu,\"output_tokens\":%zu,\"cached\":null},"
            "\"stop\":true}",
            i * 7, i);
}

static void put_dense(struct buf *b, uint64_t *s)
{
        buf_putc(b, '[');
        for (int i = 0; i < 40; i++) {
                uint64_t r = rnd(s);
                buf_printf(b, "%s{\"k\":%u,\"x\":[%d,%d.%u,%u],\"ok\":%s,\"t\":\"s%u\",\"n\":null}",
                    i ? "," : "", (unsigned)(r & 0xFFFF), -(int)(r >> 16 & 0xFF),
                    (int)(r >> 24 & 0xFF), (unsigned)(r >> 32 & 0xFFF), (unsigned)(r >> 44),
                    r & 1 ? "true" : "false", (unsigned)(r >> 50));
        }
        buf_putc(b, ']');
}

static int fill(struct corpus *c, size_t bytes, int dense)
{
        uint64_t seed = 0x9E3779B97F4A7C15u;
        size_t cap = bytes / 256;
        buf_init(&c->bytes, 0);
        c->count = 0;
        c->ends = calloc(cap, sizeof *c->ends);
        if (!c->ends)
                return -1;
        while (c->bytes.n < bytes && c->count < cap) {
                if (dense)
                        put_dense(&c->bytes, &seed);
                else
                        put_message(&c->bytes, &seed, c->count);
                c->ends[c->count++] = c->bytes.n;
        }
        return buf_check(&c->bytes, NULL);
}

typedef int run_fn(const char *p, size_t n, struct json *tape);

static int run_valid(const char *p, size_t n, struct json *tape)
{
        (void)tape;
        return json_valid(p, n, NULL) ? 0 : -1;
}

static int run_parse(const char *p, size_t n, struct json *tape)
{
        return json_parse(tape, p, n, NULL, NULL);
}

static int run_jansson(const char *p, size_t n, struct json *tape)
{
        (void)tape;
        json_t *v = json_loadb(p, n, JSON_ALLOW_NUL, NULL);
        if (!v)
                return -1;
        json_decref(v);
        return 0;
}

/* MB/s over the whole corpus, 0 when a document was refused. */
static double speed(const struct corpus *c, run_fn *run, int repeat, struct json *tape)
{
        double start = now();
        for (int k = 0; k < repeat; k++) {
                size_t at = 0;
                for (size_t i = 0; i < c->count; i++) {
                        if (run(c->bytes.p + at, c->ends[i] - at, tape) != 0)
                                return 0;
                        at = c->ends[i];
                }
        }
        return (double)c->bytes.n * repeat / (now() - start) / 1e6;
}

struct result {
        double valid;
        double parse;
        double jansson;
};

static struct result measure(const struct corpus *c, struct json *tape)
{
        double valid[ROUNDS];
        double parse[ROUNDS];
        double jansson[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
                jansson[i] = speed(c, run_jansson, 4, tape);
                valid[i] = speed(c, run_valid, 30, tape);
                parse[i] = speed(c, run_parse, 30, tape);
        }
        return (struct result){
            median(valid, ROUNDS), median(parse, ROUNDS), median(jansson, ROUNDS)};
}

int main(void)
{
        struct corpus messages = {0};
        struct corpus dense = {0};
        struct json tape;
        int rc = 1;
        json_init(&tape);
        if (fill(&messages, 4 << 20, 0) || fill(&dense, 4 << 20, 1))
                goto out;
        struct result m = measure(&messages, &tape);
        struct result d = measure(&dense, &tape);
        if (!m.valid || !m.parse || !m.jansson || !d.valid || !d.parse || !d.jansson) {
                fprintf(stderr, "bench_json: a document was refused\n");
                goto out;
        }
        printf("{\"bench\":\"json\",\"ratios\":{\"validate_vs_jansson\":%.2f,"
               "\"parse_vs_jansson\":%.2f,\"dense_validate_vs_jansson\":%.2f,"
               "\"dense_parse_vs_jansson\":%.2f},\"mb_per_s\":{\"validate\":%.0f,\"parse\":%.0f,"
               "\"jansson\":%.0f,\"dense_validate\":%.0f,\"dense_parse\":%.0f,"
               "\"dense_jansson\":%.0f}}\n",
            m.valid / m.jansson, m.parse / m.jansson, d.valid / d.jansson, d.parse / d.jansson,
            m.valid, m.parse, m.jansson, d.valid, d.parse, d.jansson);
        rc = 0;
out:
        json_release(&tape);
        buf_release(&messages.bytes);
        buf_release(&dense.bytes);
        free(messages.ends);
        free(dense.ends);
        return rc;
}
