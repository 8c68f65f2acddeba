/*
 * fuzz_json.c - a libFuzzer harness for JSON, text and terminal output; not part of the build.
 *
 *      clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined \
 *          -fno-sanitize-recover=all -Iinclude -Isrc tests/base/fuzz_json.c \
 *          src/base/{json,json_parse,json_edit,json_write,scan,text,terminal,buf,error}.c -lm \
 *          -o fuzz_json
 *      ./fuzz_json -max_total_time=60
 *
 * Beside faults of memory it looks for disagreement: between the walks, between the wide and the
 * narrow loops, and between a document and what comes back after reading and writing it.
 */
#include <stdlib.h>

#include "base/json.h"
#include "base/scan.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool holds)
{
        if (!holds)
                abort();
}

/* Reading a string and writing it again gives the same characters. */
static void check_string(const struct json *j, json_ref r)
{
        struct buf plain;
        struct buf again;
        struct buf back;
        bool lossy = false;
        buf_init(&plain, 0);
        buf_init(&again, 0);
        buf_init(&back, 0);
        must(json_string(j, r, &plain, &lossy));
        must(text_is_utf8(plain.p, plain.n));
        must(lossy || json_is_str(j, r, buf_str(&plain)));
        json_put_string(&again, buf_str(&plain));
        must(json_valid(again.p, again.n, NULL));
        json_unescape(str_span(again.p + 1, again.n - 2), &back, NULL);
        must(str_eq(buf_str(&back), buf_str(&plain)));
        buf_release(&plain);
        buf_release(&again);
        buf_release(&back);
}

static void check_tape(const struct json *j, const char *text, size_t n)
{
        struct json_edits e;
        struct buf out;
        json_edits_init(&e);
        buf_init(&out, 0);
        for (json_ref r = 0; r < j->count; r++) {
                struct str s = json_raw(j, r);
                must(s.p >= text && s.p + s.n <= text + n);
                if (json_type(j, r) == JSON_STRING)
                        check_string(j, r);
                if (json_type(j, r) == JSON_OBJECT && r % 2)
                        json_edit_add_member(&e, j, r, STR("\"k\":1"));
        }
        must(json_edits_apply(&e, j, 0, &out) == 0);
        must(json_valid(out.p, out.n, NULL));
        json_edits_release(&e);
        buf_clear(&out);
        json_edit_remove_members(&e, j, 0, (const char *[]){"a", "b", NULL});
        must(json_edits_apply(&e, j, 0, &out) == 0);
        must(json_valid(out.p, out.n, NULL));
        json_edits_release(&e);
        buf_release(&out);
}

static void check_text(const char *text, size_t n)
{
        struct buf out;
        buf_init(&out, 0);
        must(scan_utf8(text, n) == scan_utf8_baseline(text, n));
        text_for_terminal(&out, str_span(text, n), true);
        must(text_is_utf8(out.p, out.n));
        buf_clear(&out);
        text_strip_ansi(&out, str_span(text, n));
        must(out.n == 0 || !memchr(out.p, 0x1B, out.n));
        buf_clear(&out);
        json_put_string(&out, str_span(text, n));
        must(json_valid(out.p, out.n, NULL));
        size_t count = text_count(text, n);
        must(text_bytes_of(text, n, count) == n);
        buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        const char *text = (const char *)data;
        struct json j;
        struct json_fault a;
        struct json_fault b;
        size_t start;
        json_init(&j);
        bool valid = json_valid(text, n, &a);
        int rc = json_parse(&j, text, n, &b, NULL);
        must(valid == (rc == 0));
        must(a.offset == b.offset && a.what == b.what);
        if (valid)
                check_tape(&j, text, n);
        ptrdiff_t end = json_scan_value(text, n, true, &start, &a);
        must(!valid || end > 0);
        if (end > 0)
                must(json_valid(text, (size_t)end, NULL));
        for (size_t cut = 0; end > 0 && cut < (size_t)end; cut += 1 + n / 16) {
                size_t at;
                must(json_scan_value(text, cut, false, &at, &b) >= 0);
        }
        json_release(&j);
        check_text(text, n);
        return 0;
}
