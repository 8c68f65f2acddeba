/*
 * rig.h - a store with one conversation, outputs that stream into it, and readers that put pages
 * together again. For the tests of large outputs.
 */
#ifndef TEST_STENO_RIG_H
#define TEST_STENO_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "support/scratch.h"
#include "support/seed.h"
#include "steno.h"
#include "api/api_store.h"
#include "store/play.h"

struct rig {
        struct scratch scratch;
        struct env env;
        struct steno_store *store;
        struct steno_conv *conv;
        int calls; /* made so far */
};

#define OK(call)                                                                                   \
        do {                                                                                       \
                struct steno_error err = {0};                                                      \
                int ok_rc = (call);                                                                \
                if (ok_rc < 0)                                                                     \
                        fail_msg("%s: %d %s", #call, ok_rc, err.msg);                              \
        } while (0)

static inline void rig_open(struct rig *r)
{
        char url[512];
        OK(api_store_open_in(&r->env, scratch_store(&r->scratch, url), NULL, &r->store, &err));
        if (steno_conv_open(r->store, NULL, "c", &r->conv, NULL))
                OK(steno_conv_create(r->store, NULL, "c", NULL, &r->conv, &err));
}

static inline void rig_close(struct rig *r)
{
        steno_conv_close(r->conv);
        steno_close(r->store);
        r->conv = NULL;
        r->store = NULL;
}

static inline int rig_setup(void **state)
{
        struct rig *r = calloc(1, sizeof *r);
        *state = r;
        if (!r || scratch_make(&r->scratch))
                return -1;
        r->env = *env_real();
        r->env.fs = play_fs();
        rig_open(r);
        return 0;
}

static inline int rig_teardown(void **state)
{
        struct rig *r = *state;
        rig_close(r);
        scratch_remove(&r->scratch);
        free(r);
        return 0;
}

/* ---- JSON ---- */

static inline void rig_parse(struct json *j, const char *text)
{
        json_init(j);
        OK(json_parse(j, text, strlen(text), NULL, &err));
}

/* A member as text, in `to`. */
static inline bool rig_text(const char *json, const char *key, struct buf *to)
{
        struct json j;
        rig_parse(&j, json);
        buf_clear(to);
        bool there = json_string(&j, json_get(&j, 0, key), to, NULL);
        json_release(&j);
        return there;
}

static inline uint64_t rig_number(const char *json, const char *key)
{
        struct json j;
        uint64_t n = UINT64_MAX;
        rig_parse(&j, json);
        json_u64(&j, json_get(&j, 0, key), &n);
        json_release(&j);
        return n;
}

static inline bool rig_flag(const char *json, const char *key)
{
        struct json j;
        rig_parse(&j, json);
        bool yes = json_bool(&j, json_get(&j, 0, key), false);
        json_release(&j);
        return yes;
}

/* ---- in ---- */

static inline void rig_append(struct rig *r, const char *json)
{
        OK(steno_append(r->conv, json, strlen(json), NULL, NULL, &err));
}

/* An assistant message that makes this call. */
static inline void rig_call_in(struct steno_conv *conv, const char *id)
{
        struct buf b;
        buf_init(&b, 0);
        buf_puts(&b, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":");
        json_put_string(&b, str_of(id));
        buf_puts(
            &b, ",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]}");
        OK(steno_append(conv, b.p, b.n, NULL, NULL, &err));
        buf_release(&b);
}

/* A fresh call, made; its id. */
static inline const char *rig_call(struct rig *r)
{
        static char ids[8][32];
        char *id = ids[r->calls % 8];
        snprintf(id, sizeof ids[0], "call_%d", r->calls++);
        rig_call_in(r->conv, id);
        return id;
}

struct streamed {
        char *json; /* what steno_output_finish answered */
        struct buf content;
        char ref[64]; /* "" when inline */
};

static inline void streamed_release(struct streamed *s)
{
        steno_free(s->json);
        buf_release(&s->content);
}

static inline void streamed_take(struct streamed *s)
{
        struct json j;
        struct buf id;
        buf_init(&s->content, 0);
        buf_init(&id, 0);
        rig_parse(&j, s->json);
        assert_true(json_string(&j, json_get(&j, 0, "content"), &s->content, NULL));
        json_ref ref = json_get(&j, 0, "ref");
        json_string(&j, json_get(&j, ref, "id"), &id, NULL);
        snprintf(s->ref, sizeof s->ref, "%s", buf_cstr(&id));
        buf_release(&id);
        json_release(&j);
}

/* Streams bytes in as the output of a call, cut at random where `seed` is given. */
static inline void rig_stream(struct rig *r, const struct steno_output_options *opt,
    const void *bytes, size_t n, struct seed *seed, struct streamed *out)
{
        struct steno_output *o;
        const char *p = bytes;
        OK(steno_output_begin(r->conv, opt, &o, &err));
        while (n) {
                size_t k = n;
                if (seed)
                        k = 1 + seed_below(seed, seed_below(seed, 4) ? 70000 : 7);
                k = k < n ? k : n;
                OK(steno_output_write(o, p, k, &err));
                p += k;
                n -= k;
        }
        OK(steno_output_finish(o, "{\"exitCode\":0}", &out->json, &err));
        steno_output_free(o);
        streamed_take(out);
}

static inline struct steno_output_options rig_options(const char *call)
{
        return (struct steno_output_options){.size = sizeof(struct steno_output_options),
            .tool = "t",
            .call_id = call,
            .context_tools = true};
}

/* ---- out ---- */

static inline int rig_gather(void *ctx, const void *p, size_t n)
{
        buf_put(ctx, p, n);
        return ((struct buf *)ctx)->failed;
}

static inline void rig_raw(struct rig *r, const char *ref, struct buf *to)
{
        buf_clear(to);
        OK(steno_context_raw(r->conv, ref, 0, 0, rig_gather, to, &err));
}

static inline void rig_base64(struct str s, struct buf *to)
{
        uint32_t v = 0;
        int bits = 0;
        for (size_t i = 0; i < s.n && s.p[i] != '='; i++) {
                char c = s.p[i];
                int d = c >= 'A' && c <= 'Z'   ? c - 'A'
                        : c >= 'a' && c <= 'z' ? c - 'a' + 26
                        : c >= '0' && c <= '9' ? c - '0' + 52
                        : c == '+'             ? 62
                                               : 63;
                v = v << 6 | (uint32_t)d;
                bits += 6;
                if (bits >= 8) {
                        bits -= 8;
                        buf_putc(to, (char)(v >> bits));
                }
        }
}

static inline bool rig_is_escaped(const char *json)
{
        struct json j;
        rig_parse(&j, json);
        bool escaped = json_is(&j, json_get(&j, 0, "encoding"), "escaped");
        json_release(&j);
        return escaped;
}

/* Appends the decoded bytes of a page. True: it came as text. */
static inline bool rig_page(const char *json, struct buf *to)
{
        struct json j;
        struct buf content;
        rig_parse(&j, json);
        buf_init(&content, 0);
        assert_true(json_string(&j, json_get(&j, 0, "content"), &content, NULL));
        bool text = json_get(&j, 0, "encoding") == JSON_NONE;
        if (text)
                buf_put_str(to, buf_str(&content));
        else
                rig_base64(buf_str(&content), to);
        buf_release(&content);
        json_release(&j);
        return text;
}

static inline char *rig_context(struct rig *r, const char *op, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static inline char *rig_context(struct rig *r, const char *op, const char *fmt, ...)
{
        char args[1024], *json = NULL;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(args, sizeof args, fmt, ap);
        va_end(ap);
        OK(steno_context(r->conv, op, args, strlen(args), &json, &err));
        return json;
}

/* Reads from 0 to done with random limits; *split counts the pages that had to be base64. */
static inline void rig_read_all(
    struct rig *r, const char *ref, struct seed *seed, struct buf *to, int *as_base64)
{
        uint64_t offset = 0;
        buf_clear(to);
        *as_base64 = 0;
        for (bool done = false; !done;) {
                uint64_t limit = seed_below(seed, 3) ? 12288 : 1 + seed_below(seed, 9);
                if (to->n > 200000)
                        limit = 12288;
                char *json =
                    rig_context(r, "read", "{\"ref\":\"%s\",\"offset\":%llu,\"limit\":%llu}", ref,
                        (unsigned long long)offset, (unsigned long long)limit);
                assert_int_equal(rig_number(json, "offset"), offset);
                if (rig_is_escaped(json)) {
                        steno_free(json);
                        json = rig_context(r, "read",
                            "{\"ref\":\"%s\",\"offset\":%llu,\"limit\":%llu,"
                            "\"encoding\":\"base64\"}",
                            ref, (unsigned long long)offset, (unsigned long long)limit);
                }
                *as_base64 += !rig_page(json, to);
                uint64_t next = rig_number(json, "next_offset");
                done = rig_flag(json, "done");
                assert_true(next > offset || done);
                assert_int_equal(next, to->n);
                offset = next;
                steno_free(json);
        }
}

/* The last message of a view with this role, as JSON. */
static inline void rig_view(struct rig *r, int outputs, struct buf *to)
{
        struct steno_view_options opt = {
            .size = sizeof opt, .format = "openai", .outputs = outputs};
        buf_clear(to);
        OK(steno_view(r->conv, &opt, rig_gather, to, NULL, &err));
}

/* The content of the last message of a view. */
static inline void rig_last_content(struct rig *r, int outputs, struct buf *to)
{
        struct buf view;
        struct json j;
        buf_init(&view, 0);
        rig_view(r, outputs, &view);
        json_init(&j);
        OK(json_parse(&j, view.p, view.n, NULL, &err));
        json_ref last = json_at(&j, 0, json_count(&j, 0) - 1);
        buf_clear(to);
        assert_true(json_string(&j, json_get(&j, last, "content"), to, NULL));
        json_release(&j);
        buf_release(&view);
}

static inline int rig_findings(void *ctx, const char *json)
{
        (void)ctx;
        printf("# finding: %s\n", json);
        return 0;
}

static inline void rig_check(struct rig *r)
{
        struct steno_error err = {0};
        assert_int_equal(steno_check(r->store, NULL, rig_findings, NULL, &err), 0);
}

static inline void assert_same(struct str want, struct str got)
{
        assert_int_equal(want.n, got.n);
        if (want.n)
                assert_memory_equal(want.p, got.p, want.n);
}

#endif
