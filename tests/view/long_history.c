/*
 * long_history.c - makes a long conversation, for memory.test and bench_tail.
 *
 *   long_history STORE CONVERSATION COUNT
 *
 * It has turns of an agent: a question, two calls with results, an answer. One question in two
 * hundred is a system message instead. A tenth of the messages is deleted, replaced or taken off
 * the context. The log is written directly, which takes seconds for a million messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/about.h"
#include "model/record.h"
#include "steno.h"

struct log {
        FILE *file;
        struct buf line, x, m;
        uint64_t seq;
        uint64_t prev; /* amendment */
};

static void put_record(struct log *l, struct about *about)
{
        char id[32];
        snprintf(id, sizeof id, "m%llu", (unsigned long long)++l->seq);
        buf_clear(&l->line);
        buf_clear(&l->x);
        if (!about->kind.n)
                about->length = l->m.n;
        about_write(about, &l->x);
        struct record r = {.seq = l->seq,
            .at = STR("2026-11-15T05:00:06.000Z"),
            .fmt = STR("openai"),
            .batch_count = 1,
            .x = buf_str(&l->x),
            .m = buf_str(&l->m)};
        record_write(&l->line, &r, str_of(id));
        fwrite(l->line.p, 1, l->line.n, l->file);
        buf_clear(&l->m);
}

static void put_words(struct log *l, const char *role, const char *text, size_t i)
{
        struct about about = {.role = str_of(role)};
        buf_printf(&l->m, "{\"role\":\"%s\",\"content\":\"%s %zu\"}", role, text, i);
        put_record(l, &about);
}

static void put_calls(struct log *l, size_t i)
{
        char ids[2][32];
        struct str list[2];
        for (int k = 0; k < 2; k++) {
                snprintf(ids[k], sizeof ids[k], "call_%zu_%d", i, k);
                list[k] = str_of(ids[k]);
        }
        struct about ask = {.role = STR("assistant"), .calls = list, .call_count = 2};
        buf_printf(&l->m,
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"%s\",\"type\":"
            "\"function\",\"function\":{\"name\":\"read_file\",\"arguments\":\"{\\\"path\\\":"
            "\\\"src/file_%zu.c\\\"}\"}},{\"id\":\"%s\",\"type\":\"function\",\"function\":"
            "{\"name\":\"run\",\"arguments\":\"{}\"}}]}",
            ids[0], i, ids[1]);
        put_record(l, &ask);
        for (int k = 0; k < 2; k++) {
                struct about answer = {.role = STR("tool"), .answers = &list[k], .answer_count = 1};
                buf_printf(
                    &l->m, "{\"role\":\"tool\",\"tool_call_id\":\"%s\",\"content\":\"", ids[k]);
                for (int line = 0; line < 6; line++)
                        buf_printf(&l->m, "src/file_%zu.c:%d: note: in a call to reserve here\\n",
                            i, line);
                buf_puts(&l->m, "\"}");
                put_record(l, &answer);
        }
}

static void put_amendment(struct log *l, uint64_t target)
{
        static const char *const kinds[] = {"delete", "supersede", "meta"};
        static const char *const with[] = {"null",
            "{\"role\":\"assistant\",\"content\":\"Better said.\"}",
            "{\"includeInContext\":false}"};
        char id[32];
        size_t k = target / 10 % 3;
        snprintf(id, sizeof id, "m%llu", (unsigned long long)target);
        struct about about = {.kind = str_of(kinds[k]), .target = str_of(id), .prev = l->prev};
        if (k == 1)
                about.role = STR("assistant");
        buf_puts(&l->m, with[k]);
        put_record(l, &about);
        l->prev = l->seq;
}

static void fill(struct log *l, size_t count)
{
        uint64_t amended = 7;
        for (size_t i = 0; i < count / 5; i++) {
                if (i % 200 == 0)
                        put_words(l, "system", "be brief, says rule", i);
                else
                        put_words(l, "user", "please look at file", i);
                put_calls(l, i);
                put_words(l, "assistant", "mended now: file", i);
                for (; amended <= l->seq; amended += 10)
                        put_amendment(l, amended);
        }
}

int main(int argc, char **argv)
{
        struct steno_store *store;
        struct steno_conv *conv;
        struct steno_error err = {0};
        struct log l = {0};
        char path[4096];
        if (argc != 4 || steno_open(argv[1], NULL, &store, &err) ||
            steno_conv_create(store, NULL, argv[2], NULL, &conv, &err)) {
                fprintf(stderr, "long_history: %s\n", err.msg);
                return 2;
        }
        steno_conv_close(conv);
        steno_close(store);
        snprintf(path, sizeof path, "%s/projects/default/conversations/%s/messages.jsonl", argv[1],
            argv[2]);
        l.file = fopen(path, "w");
        if (!l.file) {
                perror(path);
                return 1;
        }
        buf_init(&l.line, 0);
        buf_init(&l.x, 0);
        buf_init(&l.m, 0);
        fill(&l, strtoul(argv[3], NULL, 10));
        buf_release(&l.line);
        buf_release(&l.x);
        buf_release(&l.m);
        return fclose(l.file) ? 1 : 0;
}
