/* api_transcript.c - see api_transcript.h */
#include "api/api_transcript.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/title.h"

#define FLUSH_AT (64 * KIB)

struct writer;

/* The two shapes differ in these alone. */
struct shape {
        void (*begin)(struct writer *w, const char *title);
        void (*message)(struct writer *w, json_ref m);
        void (*end)(struct writer *w);
};

struct writer {
        const struct shape *shape;
        steno_sink sink;
        void *ctx;
        struct buf out;
        struct buf in;   /* of the view: what is not a whole message yet */
        size_t tried;    /* bytes of it that were not enough */
        struct json j;   /* of the message at work */
        struct buf text; /* scratch */
        struct steno_error err;
};

static int flush(struct writer *w, bool all)
{
        if (w->out.failed)
                return buf_check(&w->out, &w->err);
        if (w->out.n == 0 || (!all && w->out.n < FLUSH_AT))
                return 0;
        int stop = w->sink(w->ctx, w->out.p, w->out.n);
        buf_clear(&w->out);
        return stop ? error_set(&w->err, STENO_EINTERRUPTED, "stopped by the caller") : 0;
}

/* A member as text: a string decoded, anything else as JSON, nothing for null. */
static struct str text_of(struct writer *w, json_ref v)
{
        buf_clear(&w->text);
        if (!json_string(&w->j, v, &w->text, NULL) && json_type(&w->j, v) > JSON_NULL)
                buf_put_str(&w->text, json_raw(&w->j, v));
        return buf_str(&w->text);
}

static struct str member(struct writer *w, json_ref object, const char *key)
{
        return text_of(w, json_get(&w->j, object, key));
}

/* ---- the view, message by message ---- */

static int take_message(struct writer *w, struct str json)
{
        int rc = json_parse(&w->j, json.p, json.n, NULL, &w->err);
        if (rc == 0)
                w->shape->message(w, 0);
        return rc ? rc : flush(w, false);
}

/* Takes the whole messages of a text, and says how much of it that was. The text is not moved for
 * each of them: a view may come in one piece, and then it is as long as the conversation. */
static int take_whole(struct writer *w, struct str s, size_t *used)
{
        for (;;) {
                size_t start = 0;
                while (*used < s.n && memchr("[],\n ", s.p[*used], 5))
                        ++*used;
                const char *at = s.p + *used;
                ptrdiff_t end =
                    *used < s.n ? json_scan_value(at, s.n - *used, false, &start, NULL) : 0;
                if (end < 0)
                        return error_set(&w->err, STENO_ECORRUPT, "the view is not JSON");
                if (end == 0)
                        return 0;
                int rc = take_message(w, str_span(at + start, (size_t)end - start));
                if (rc)
                        return rc;
                *used += (size_t)end;
        }
}

static int take_view(void *ctx, const void *p, size_t n)
{
        struct writer *w = ctx;
        size_t used = 0;
        int rc = 0;
        if (w->in.n == 0) {
                rc = take_whole(w, str_span(p, n), &used);
                if (rc == 0)
                        buf_put(&w->in, (const char *)p + used, n - used);
                w->tried = w->in.n;
        } else {
                buf_put(&w->in, p, n);
                if (w->in.n <= w->tried + w->tried / 2)
                        return w->in.failed ? buf_check(&w->in, &w->err) : 0;
                rc = take_whole(w, buf_str(&w->in), &used);
                buf_drop_front(&w->in, used);
                w->tried = w->in.n;
        }
        return rc || !w->in.failed ? rc : buf_check(&w->in, &w->err);
}

static char *title_of(struct steno_conv *conv)
{
        char *meta = NULL, *title = NULL;
        struct json j;
        json_init(&j);
        if (steno_conv_meta(conv, &meta, NULL) == 0 &&
            json_parse(&j, meta, strlen(meta), NULL, NULL) == 0)
                title = title_dup(&j, 0);
        json_release(&j);
        steno_free(meta);
        return title && *title ? title : (free(title), strdup(steno_conv_id(conv)));
}

static int write_transcript(struct steno_conv *conv, const struct shape *shape, steno_sink sink,
    void *ctx, struct steno_error *err)
{
        struct steno_view_options opt = {
            .size = sizeof opt, .format = "chat", .all_messages = true, .no_ids = true};
        struct writer w = {.shape = shape, .sink = sink, .ctx = ctx};
        char *title = title_of(conv);
        if (!title)
                return error_nomem(err);
        buf_init(&w.out, 0);
        buf_init(&w.in, 0);
        buf_init(&w.text, 0);
        json_init(&w.j);
        shape->begin(&w, title);
        int rc = steno_view(conv, &opt, take_view, &w, NULL, err);
        if (w.err.code) { /* then the view only says that it was stopped */
                rc = w.err.code;
                if (err)
                        *err = w.err;
        }
        if (rc == 0) {
                size_t used = 0;
                rc = take_whole(&w, buf_str(&w.in), &used);
                if (rc == 0) {
                        shape->end(&w);
                        rc = flush(&w, true);
                }
                if (rc && err)
                        *err = w.err;
        }
        json_release(&w.j);
        buf_release(&w.text);
        buf_release(&w.in);
        buf_release(&w.out);
        free(title);
        return rc;
}

/* ---- Markdown ---- */

/* A fence that nothing inside can close. */
static void put_fenced(struct writer *w, struct str s, const char *language)
{
        size_t longest = 2, run = 0;
        for (size_t i = 0; i < s.n; i++) {
                run = s.p[i] == '`' ? run + 1 : 0;
                longest = run > longest ? run : longest;
        }
        for (size_t i = 0; i <= longest; i++)
                buf_putc(&w->out, '`');
        buf_puts(&w->out, language);
        buf_putc(&w->out, '\n');
        buf_put_str(&w->out, s);
        if (s.n && s.p[s.n - 1] != '\n')
                buf_putc(&w->out, '\n');
        for (size_t i = 0; i <= longest; i++)
                buf_putc(&w->out, '`');
        buf_puts(&w->out, "\n\n");
}

/* Text from outside on a line of its own making: one line. */
static void put_inline(struct writer *w, struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                buf_putc(&w->out, (unsigned char)s.p[i] < ' ' ? ' ' : s.p[i]);
}

static void md_begin(struct writer *w, const char *title)
{
        buf_puts(&w->out, "# ");
        put_inline(w, str_of(title));
        buf_puts(&w->out, "\n\n");
}

static void md_call(struct writer *w, json_ref call)
{
        buf_puts(&w->out, "### ");
        put_inline(w, member(w, call, "name"));
        buf_puts(&w->out, " (");
        put_inline(w, member(w, call, "state"));
        buf_puts(&w->out, ")\n\n");
        put_fenced(w, member(w, call, "arguments"), "json");
        struct str result = member(w, call, "result");
        if (!result.n)
                result = member(w, call, "error");
        if (result.n)
                put_fenced(w, result, "");
}

static void md_message(struct writer *w, json_ref m)
{
        json_ref calls = json_get(&w->j, m, "toolCalls");
        buf_puts(&w->out, "## ");
        put_inline(w, member(w, m, "role"));
        struct str at = member(w, m, "createdAt");
        if (at.n) {
                buf_puts(&w->out, ", ");
                put_inline(w, at);
        }
        buf_puts(&w->out, "\n\n");
        struct str thinking = member(w, m, "thinking");
        if (thinking.n) {
                buf_puts(&w->out, "Thinking:\n\n");
                put_fenced(w, thinking, "");
        }
        struct str content = member(w, m, "content");
        if (content.n) {
                buf_put_str(&w->out, content);
                buf_puts(&w->out, "\n\n");
        }
        for (json_ref c = json_child(&w->j, calls); c != JSON_NONE; c = json_next(&w->j, calls, c))
                md_call(w, c);
}

static void md_end(struct writer *w)
{
        (void)w;
}

int api_transcript_md(struct steno_conv *conv, steno_sink sink, void *ctx, struct steno_error *err)
{
        static const struct shape MD = {md_begin, md_message, md_end};
        return write_transcript(conv, &MD, sink, ctx, err);
}

/* ---- HTML ---- */

static const char HTML_HEAD[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<style>\n"
    ":root{color-scheme:light dark}\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}\n"
    "article{border-top:1px solid #8884;padding:.75rem 0}\n"
    "header{font-size:.85rem;opacity:.75}\n"
    "pre{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;\n"
    "background:#8881;padding:.6rem;border-radius:.4rem;margin:.4rem 0}\n"
    ".text{white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}\n"
    "summary{cursor:pointer}img{max-width:100%}\n"
    "</style>\n<title>";

static void put_html(struct writer *w, struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                switch (s.p[i]) {
                case '&':
                        buf_puts(&w->out, "&amp;");
                        break;
                case '<':
                        buf_puts(&w->out, "&lt;");
                        break;
                case '>':
                        buf_puts(&w->out, "&gt;");
                        break;
                case '"':
                        buf_puts(&w->out, "&quot;");
                        break;
                case '\'':
                        buf_puts(&w->out, "&#39;");
                        break;
                case '\0':
                        buf_puts(&w->out, "\xef\xbf\xbd");
                        break;
                default:
                        buf_putc(&w->out, s.p[i]);
                }
        }
}

static void put_element(struct writer *w, const char *open, struct str s, const char *close)
{
        if (!s.n)
                return;
        buf_puts(&w->out, open);
        put_html(w, s);
        buf_puts(&w->out, close);
}

static void html_begin(struct writer *w, const char *title)
{
        buf_puts(&w->out, HTML_HEAD);
        put_html(w, str_of(title));
        buf_puts(&w->out, "</title></head>\n<body><h1>");
        put_html(w, str_of(title));
        buf_puts(&w->out, "</h1>\n");
}

static void html_call(struct writer *w, json_ref call)
{
        buf_puts(&w->out, "<details open><summary>");
        put_html(w, member(w, call, "name"));
        buf_puts(&w->out, " &middot; ");
        put_html(w, member(w, call, "state"));
        buf_puts(&w->out, "</summary>\n");
        put_element(w, "<pre>", member(w, call, "arguments"), "</pre>\n");
        put_element(w, "<pre>", member(w, call, "result"), "</pre>\n");
        put_element(w, "<pre>", member(w, call, "error"), "</pre>\n");
        buf_puts(&w->out, "</details>\n");
}

static bool is_base64(struct str s)
{
        static const char LETTERS[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
        for (size_t i = 0; i < s.n; i++)
                if (!memchr(LETTERS, s.p[i], sizeof LETTERS - 1))
                        return false;
        return s.n > 0;
}

/* Pictures stand in the file itself; everything else is only named. */
static void html_attachment(struct writer *w, json_ref a)
{
        static const char *const SHOWN[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
        json_ref mime = json_get(&w->j, a, "mimeType");
        struct str data = json_inner(&w->j, json_get(&w->j, a, "data"));
        for (size_t i = 0; i < sizeof SHOWN / sizeof *SHOWN; i++) {
                if (!json_is(&w->j, mime, SHOWN[i]) || !is_base64(data))
                        continue;
                buf_printf(&w->out, "<p><img alt=\"\" src=\"data:%s;base64,", SHOWN[i]);
                buf_put_str(&w->out, data);
                buf_puts(&w->out, "\"></p>\n");
                return;
        }
        put_element(w, "<p>attachment: ", member(w, a, "type"), "</p>\n");
}

static void html_message(struct writer *w, json_ref m)
{
        json_ref calls = json_get(&w->j, m, "toolCalls");
        json_ref files = json_get(&w->j, m, "attachments");
        buf_puts(&w->out, "<article><header>");
        put_html(w, member(w, m, "role"));
        put_element(w, " &middot; ", member(w, m, "createdAt"), "");
        buf_puts(&w->out, "</header>\n");
        put_element(w, "<details><summary>thinking</summary><pre>", member(w, m, "thinking"),
            "</pre></details>\n");
        put_element(w, "<div class=\"text\">", member(w, m, "content"), "</div>\n");
        for (json_ref f = json_child(&w->j, files); f != JSON_NONE; f = json_next(&w->j, files, f))
                html_attachment(w, f);
        for (json_ref c = json_child(&w->j, calls); c != JSON_NONE; c = json_next(&w->j, calls, c))
                html_call(w, c);
        buf_puts(&w->out, "</article>\n");
}

static void html_end(struct writer *w)
{
        buf_puts(&w->out, "</body></html>\n");
}

int api_transcript_html(
    struct steno_conv *conv, steno_sink sink, void *ctx, struct steno_error *err)
{
        static const struct shape HTML = {html_begin, html_message, html_end};
        return write_transcript(conv, &HTML, sink, ctx, err);
}

/* ---- as it is stored ---- */

struct records {
        steno_sink sink;
        void *ctx;
        struct buf out;
        bool any;
        struct steno_error *err;
};

static int put_record(void *ctx, const struct steno_record *r)
{
        struct records *s = ctx;
        char *message = NULL;
        size_t n = 0, about_n = 0;
        bool damaged = strcmp(steno_record_kind(r), "damaged") == 0;
        int rc = damaged ? 0 : steno_record_message(r, &message, &n, s->err);
        if (rc)
                return rc;
        buf_clear(&s->out);
        buf_puts(&s->out, s->any ? ",\n" : "[");
        struct jsonw w = jsonw_to(&s->out);
        jsonw_object(&w);
        jsonw_field_u64(&w, "seq", steno_record_seq(r));
        jsonw_field_cstr(&w, "kind", steno_record_kind(r));
        if (!damaged) {
                const char *about = steno_record_about(r, &about_n);
                jsonw_field_cstr(&w, "id", steno_record_id(r));
                jsonw_field_cstr(&w, "at", steno_record_at(r));
                jsonw_field_cstr(&w, "format", steno_record_format(r));
                jsonw_field_raw(&w, "about", str_span(about, about_n));
                jsonw_field_raw(&w, "message", str_span(message, n));
        }
        jsonw_object_end(&w);
        steno_free(message);
        s->any = true;
        if (s->out.failed)
                return buf_check(&s->out, s->err);
        return s->sink(s->ctx, s->out.p, s->out.n)
                   ? error_set(s->err, STENO_EINTERRUPTED, "stopped by the caller")
                   : 0;
}

int api_transcript_json(
    struct steno_conv *conv, steno_sink sink, void *ctx, struct steno_error *err)
{
        struct steno_error why = {0};
        struct records s = {.sink = sink, .ctx = ctx, .err = err ? err : &why};
        buf_init(&s.out, 0);
        int rc = steno_read(conv, 0, 0, put_record, &s, s.err);
        const char *end = s.any ? "]\n" : "[]\n";
        if (rc == 0 && sink(ctx, end, strlen(end)))
                rc = error_set(s.err, STENO_EINTERRUPTED, "stopped by the caller");
        buf_release(&s.out);
        return rc;
}
