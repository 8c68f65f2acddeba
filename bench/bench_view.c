/*
 * bench_view.c - how fast histories are converted, beside memcpy of the same bytes. A JSON line
 * for each pair of formats: {"bench":"convert","from","to","mb_per_s","memcpy_ratio"}. Two
 * arguments are the one pair to look at, such as with a profiler.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "steno.h"

static double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* one core, whatever else is running */
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int keep(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;
        buf_clear(b);
        buf_put(b, p, n);
        return 0;
}

static int count(void *ctx, const void *p, size_t n)
{
        (void)p;
        *(size_t *)ctx += n;
        return 0;
}

/* Turns of a working agent: a question, calls with arguments, results of a few KB, an answer. */
static void make_history(struct buf *b, size_t bytes)
{
        static const char line[] =
            "src/base/buf.c:47: note: in a call to \\\"buf_reserve\\\" here\\n";
        buf_putc(b, '[');
        for (unsigned turn = 0; b->n < bytes; turn++) {
                buf_printf(b,
                    "%s{\"role\":\"user\",\"content\":\"please look at file %u and fix it\"},",
                    turn ? "," : "", turn);
                buf_printf(b,
                    "{\"role\":\"assistant\",\"content\":\"I will read it first.\",\"tool_calls\":["
                    "{\"id\":\"call_%u_0\",\"type\":\"function\",\"function\":{\"name\":\"read_"
                    "file\","
                    "\"arguments\":\"{\\\"path\\\":\\\"src/file_%u.c\\\",\\\"limit\\\":200}\"}},"
                    "{\"id\":\"call_%u_1\",\"type\":\"function\",\"function\":{\"name\":\"run\","
                    "\"arguments\":\"{\\\"command\\\":\\\"make test\\\"}\"}}]},",
                    turn, turn, turn);
                for (unsigned i = 0; i < 2; i++) {
                        buf_printf(b,
                            "{\"role\":\"tool\",\"tool_call_id\":\"call_%u_%u\",\"content\":\"",
                            turn, i);
                        for (unsigned k = 0; k < 30; k++)
                                buf_puts(b, line);
                        buf_puts(b, "\"},");
                }
                buf_puts(b,
                    "{\"role\":\"assistant\",\"content\":\"The buffer was too small; it grows "
                    "by half now, and the test that failed passes.\"}");
        }
        buf_putc(b, ']');
}

static double time_memcpy(const struct buf *in)
{
        char *to = malloc(in->n);
        if (!to)
                return 1;
        double best = 1e9;
        for (int i = 0; i < 5; i++) {
                double t = now();
                memcpy(to, in->p, in->n);
                __asm__ volatile("" : : "r"(to) : "memory");
                t = now() - t;
                best = t < best ? t : best;
        }
        free(to);
        return best;
}

static int run(const char *from, const char *to, const struct buf *in)
{
        double best = 1e9, copy = time_memcpy(in);
        size_t total = 0;
        struct steno_error err = {0};
        for (int i = 0; i < 5; i++) {
                double t = now();
                if (steno_convert(from, to, in->p, in->n, count, &total, NULL, &err)) {
                        fprintf(stderr, "%s to %s: %s\n", from, to, err.msg);
                        return 1;
                }
                t = now() - t;
                best = t < best ? t : best;
        }
        printf(
            "{\"bench\":\"convert\",\"from\":\"%s\",\"to\":\"%s\",\"bytes\":%zu,\"mb_per_s\":%.0f,"
            "\"memcpy_ratio\":%.1f}\n",
            from, to, in->n, (double)in->n / best / 1e6, best / copy);
        return 0;
}

int main(int argc, char **argv)
{
        static const char *const formats[] = {"openai", "responses", "anthropic", "gemini",
            "acontext", "toolmessage2", "toolmessage", "chat", "legacy"};
        struct buf base, in;
        buf_init(&base, 0);
        buf_init(&in, 0);
        make_history(&base, 16 << 20);
        int bad = 0;
        if (argc == 3) {
                struct steno_error err = {0};
                bad = steno_convert("openai", argv[1], base.p, base.n, keep, &in, NULL, &err);
                return bad || run(argv[1], argv[2], &in);
        }
        for (size_t i = 0; i < 9; i++)
                bad |= run("openai", formats[i], &base);
        for (size_t i = 1; i < 9 && !bad; i++) {
                struct steno_error err = {0};
                bad = steno_convert("openai", formats[i], base.p, base.n, keep, &in, NULL, &err);
                bad = bad || run(formats[i], "openai", &in);
        }
        buf_release(&base);
        buf_release(&in);
        return bad ? 1 : 0;
}
