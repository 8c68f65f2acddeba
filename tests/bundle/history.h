/*
 * history.h - random histories in a store, with everything a record can refer to: batches, calls
 * and results, large outputs, large tokens, amendments.
 */
#ifndef BUNDLE_HISTORY_H
#define BUNDLE_HISTORY_H

#include "base/buf.h"
#include "store/fixture.h"
#include "support/seed.h"

struct history {
        struct steno_conv *conv;
        struct seed *seed;
        int calls;
        int messages;
        char ids[256][32]; /* of messages that can be deleted or replaced */
        int id_count;
};

static inline void history_append(struct history *h, const char *json, size_t n)
{
        struct steno_receipt *r = NULL;
        OK(steno_append(h->conv, json, n, NULL, &r, &err));
        for (size_t i = 0; i < steno_receipt_count(r) && h->id_count < 256; i++)
                snprintf(h->ids[h->id_count++], sizeof h->ids[0], "%s", steno_receipt_id(r, i));
        steno_receipt_free(r);
}

static inline void history_text(struct history *h, size_t n, struct buf *out)
{
        while (n-- > 0)
                buf_putc(out, n % 61 == 60 ? ' ' : (char)('a' + seed_below(h->seed, 26)));
}

/* One or a few user messages in one batch; some with a token that becomes a part. */
static inline void history_say(struct history *h)
{
        struct buf b;
        int count = 1 + (int)seed_below(h->seed, 3);
        buf_init(&b, 0);
        buf_putc(&b, '[');
        for (int i = 0; i < count; i++) {
                bool large = seed_below(h->seed, 6) == 0;
                buf_printf(&b, "%s{\"role\":\"user\",\"n\":%d,\"content\":\"", i ? "," : "",
                    h->messages++);
                history_text(h, large ? 40000 : 20 + seed_below(h->seed, 100), &b);
                buf_puts(&b, "\"}");
        }
        buf_putc(&b, ']');
        history_append(h, b.p, b.n);
        buf_release(&b);
}

/* A call and its result, which may be large, and may be missing. */
static inline void history_call(struct history *h)
{
        struct buf b;
        int call = h->calls++;
        buf_init(&b, 0);
        buf_printf(&b,
            "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"call_%d\","
            "\"type\":\"function\",\"function\":{\"name\":\"ls\",\"arguments\":\"{}\"}}]}",
            call);
        history_append(h, b.p, b.n);
        buf_clear(&b);
        if (seed_below(h->seed, 8)) {
                buf_printf(
                    &b, "{\"role\":\"tool\",\"tool_call_id\":\"call_%d\",\"content\":\"", call);
                history_text(h, seed_below(h->seed, 2) ? 30 : 20000, &b);
                buf_puts(&b, "\"}");
                history_append(h, b.p, b.n);
        }
        buf_release(&b);
}

static inline void history_amend(struct history *h)
{
        static const char NEW[] = "{\"role\":\"user\",\"content\":\"something else\"}";
        static const char META[] = "{\"stars\":5}";
        struct steno_receipt *r = NULL;
        if (!h->id_count)
                return;
        const char *id = h->ids[seed_below(h->seed, (uint64_t)h->id_count)];
        int kind = (int)seed_below(h->seed, 3);
        /* What was deleted cannot be deleted again. */
        steno_amend(h->conv,
            kind == 0   ? "delete"
            : kind == 1 ? "supersede"
                        : "meta",
            id,
            kind == 0   ? NULL
            : kind == 1 ? NEW
                        : META,
            kind == 0 ? 0 : strlen(kind == 1 ? NEW : META), NULL, &r, NULL);
        steno_receipt_free(r);
}

static inline void history_step(struct history *h)
{
        switch (seed_below(h->seed, 4)) {
        case 0:
                history_say(h);
                break;
        case 1:
        case 2:
                history_call(h);
                break;
        default:
                history_amend(h);
        }
}

static inline int history_take(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return 0;
}

/* The whole history as a model would get it, with every output in full. */
static inline void history_view(struct steno_conv *conv, struct buf *out)
{
        struct steno_view_options opt = {
            .size = sizeof opt, .format = "openai", .outputs = STENO_OUTPUTS_FULL};
        buf_clear(out);
        OK(steno_view(conv, &opt, history_take, out, NULL, &err));
}

static inline int history_finding(void *ctx, const char *json)
{
        (void)ctx;
        printf("# %s\n", json);
        return 0;
}

/* Of the whole store. */
static inline void history_check(struct steno_store *store)
{
        struct steno_error err = {0};
        int n = steno_check(store, NULL, history_finding, NULL, &err);
        if (n != 0)
                fail_msg("check: %d findings; %s", n, err.msg);
}

#endif
