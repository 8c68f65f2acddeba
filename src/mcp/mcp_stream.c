/*
 * mcp_stream.c - see mcp_stream.h
 */
#include "mcp/mcp_stream.h"

#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "mcp/mcp_content.h"

#define OUT_BYTES (32 * KIB)
#define PART_MAX (8 * MIB) /* of a part beside its large strings */
#define ERROR_MAX (64 * KIB)

enum { MESSAGE = 1, RESULT = 2, CONTENT = 3, PART = 4 };

void mcp_stream_init(struct mcp_stream *s, steno_sink sink, void *ctx)
{
        *s = (struct mcp_stream){.sink = sink, .ctx = ctx};
        json_stream_init(&s->check);
        buf_init(&s->scalar, 256);
        buf_init(&s->part, PART_MAX);
        buf_init(&s->out, 2 * OUT_BYTES);
        buf_init(&s->error, ERROR_MAX);
}

void mcp_stream_release(struct mcp_stream *s)
{
        buf_release(&s->scalar);
        buf_release(&s->part);
        buf_release(&s->out);
        buf_release(&s->error);
}

/* ---- giving out ---- */

static void flush(struct mcp_stream *s)
{
        if (s->out.n && s->sink && !s->failed)
                s->failed = s->sink(s->ctx, s->out.p, s->out.n);
        s->given += s->out.n;
        buf_clear(&s->out);
}

static void give(struct mcp_stream *s, const char *p, size_t n)
{
        while (n) {
                size_t take = n < OUT_BYTES ? n : OUT_BYTES;
                buf_put(&s->out, p, take);
                if (s->out.failed)
                        s->failed = STENO_ENOMEM;
                if (s->out.n >= OUT_BYTES)
                        flush(s);
                p += take;
                n -= take;
        }
}

/* Parts stand on lines of their own. */
static void begin_part(struct mcp_stream *s)
{
        if (s->begun)
                give(s, "\n", 1);
        s->begun = true;
}

static void give_character(struct mcp_stream *s, uint32_t cp)
{
        char text[4];
        give(s, text, text_encode_to(cp, text));
}

/* A unit of \uXXXX: halves of a pair are put together, a lone half is U+FFFD. */
static void give_unit(struct mcp_stream *s, uint32_t unit)
{
        bool low = unit >= 0xDC00 && unit < 0xE000;
        if (s->high && low) {
                give_character(s, 0x10000 + ((s->high - 0xD800) << 10) + (unit - 0xDC00));
                s->high = 0;
                return;
        }
        if (s->high)
                give_character(s, 0xFFFD);
        s->high = unit >= 0xD800 && unit < 0xDC00 ? unit : 0;
        if (!s->high)
                give_character(s, low ? 0xFFFD : unit);
}

/* One byte of a string that goes out decoded; `escaped` and `hex` are its state. */
static void decode(struct mcp_stream *s, char c)
{
        static const char FROM[] = "bfnrt", TO[] = "\b\f\n\r\t";
        if (s->hex) {
                uint32_t digit = (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
                s->unit = s->unit << 4 | (digit & 15);
                if (--s->hex == 0)
                        give_unit(s, s->unit);
                return;
        }
        if (s->escaped && c == 'u') {
                s->escaped = false;
                s->hex = 4;
                s->unit = 0;
                return;
        }
        if (!s->escaped && c == '\\') {
                s->escaped = true;
                return;
        }
        if (s->high)
                give_character(s, 0xFFFD);
        s->high = 0;
        if (s->escaped) {
                const char *at = strchr(FROM, c);
                c = at && c ? TO[at - FROM] : c;
        }
        s->escaped = false;
        give(s, &c, 1);
}

/* ---- parts ---- */

static bool in_part(const struct mcp_stream *s)
{
        return s->depth >= PART && strcmp(s->level[MESSAGE].key, "result") == 0 &&
               strcmp(s->level[RESULT].key, "content") == 0;
}

static void keep(struct mcp_stream *s, char c)
{
        if (!s->sink)
                return;
        buf_putc(&s->part, c);
        if (s->part.failed && !s->failed)
                s->failed = STENO_ELIMIT;
}

/* The string at hand became large: from here on it goes out as it comes. */
static void start_streaming(struct mcp_stream *s)
{
        bool text = s->depth == PART && strcmp(s->level[PART].key, "text") == 0;
        struct buf begun;
        buf_init(&begun, 0);
        buf_put(&begun, s->part.p + s->string_at + 1, s->part.n - s->string_at - 1);
        if (begun.failed)
                s->failed = STENO_ENOMEM;
        begin_part(s);
        if (!text) {
                const char *key = s->level[s->depth < MCP_STREAM_LEVELS ? s->depth : PART].key;
                give(s, "[", 1);
                give(s, key, strlen(key));
                give(s, "]\n", 2);
        }
        s->part_text = s->part_text || text;
        s->part_other = s->part_other || !text;
        s->streaming = true;
        s->part.n = s->string_at + 1;
        s->escaped = false;
        for (size_t i = 0; i < begun.n; i++)
                decode(s, begun.p[i]);
        buf_release(&begun);
}

/* A part is over. What did not go out yet does now. */
static void end_part(struct mcp_stream *s)
{
        struct json j;
        struct buf text;
        json_init(&j);
        buf_init(&text, 2 * PART_MAX);
        if (s->part_other) {
                give(s, "\n", 1);
                give(s, s->part.p, s->part.n);
        } else if (!s->part_text && json_parse(&j, s->part.p, s->part.n, NULL, NULL) == 0) {
                begin_part(s);
                mcp_content_put_part(&text, &j, 0);
                if (text.failed)
                        s->failed = STENO_ENOMEM;
                else
                        give(s, text.p, text.n);
        }
        buf_release(&text);
        json_release(&j);
        buf_clear(&s->part);
        s->part_text = s->part_other = false;
}

/* ---- the message ---- */

static char *key_here(struct mcp_stream *s)
{
        return s->depth >= 1 && s->depth <= MCP_STREAM_LEVELS && s->level[s->depth].object
                   ? s->level[s->depth].key
                   : NULL;
}

static bool at(const struct mcp_stream *s, uint32_t depth, const char *key)
{
        return s->depth == depth && strcmp(s->level[depth].key, key) == 0;
}

/* A scalar of the message or the result is over. */
static void take_scalar(struct mcp_stream *s)
{
        struct str v = buf_str(&s->scalar);
        if (at(s, MESSAGE, "id") && v.n && v.p[0] >= '0' && v.p[0] <= '9') {
                s->has_id = true;
                s->id = 0;
                for (size_t i = 0; i < v.n && v.p[i] >= '0' && v.p[i] <= '9'; i++)
                        s->id = s->id * 10 + (uint64_t)(v.p[i] - '0');
        }
        if (at(s, RESULT, "isError") && strcmp(s->level[MESSAGE].key, "result") == 0)
                s->is_error = str_is(v, "true");
        buf_clear(&s->scalar);
        s->scalar.failed = 0;
}

static void take_key(struct mcp_stream *s)
{
        char *key = key_here(s);
        size_t n = s->scalar.n;
        if (key) {
                n = n < sizeof s->level[0].key ? n : sizeof s->level[0].key - 1;
                memcpy(key, s->scalar.p ? s->scalar.p : "", n);
                key[n] = '\0';
        }
        buf_clear(&s->scalar);
        s->scalar.failed = 0;
        s->has_method = s->has_method || at(s, MESSAGE, "method");
        s->has_result = s->has_result || at(s, MESSAGE, "result");
        s->has_error = s->has_error || at(s, MESSAGE, "error");
        if (at(s, RESULT, "structuredContent") && strcmp(s->level[MESSAGE].key, "result") == 0) {
                begin_part(s);
                s->in_structured = s->has_content = true;
        }
}

static void in_string(struct mcp_stream *s, char c)
{
        if (s->streaming) {
                if (c == '"' && !s->escaped && !s->hex) {
                        if (s->high)
                                give_character(s, 0xFFFD);
                        s->high = 0;
                        s->streaming = s->in_string = false;
                        keep(s, c);
                } else {
                        decode(s, c);
                }
                return;
        }
        bool ends = c == '"' && !s->escaped;
        s->escaped = c == '\\' && !s->escaped;
        if (in_part(s)) {
                keep(s, c);
                /* Not in the middle of an escape, so that decoding can begin anew. */
                if (!ends && !s->escaped && !s->is_key &&
                    s->part.n - s->string_at > MCP_STREAM_STRING)
                        start_streaming(s);
        }
        if (ends) {
                s->in_string = false;
                if (s->is_key)
                        take_key(s);
                return;
        }
        if (s->is_key)
                buf_putc(&s->scalar, c); /* a long one is none of ours */
}

static void open_level(struct mcp_stream *s, bool object)
{
        s->depth++;
        if (s->depth <= MCP_STREAM_LEVELS) {
                s->level[s->depth].object = object;
                s->level[s->depth].key[0] = '\0';
        }
        s->is_key = object;
        if (s->depth == CONTENT && !object && strcmp(s->level[MESSAGE].key, "result") == 0 &&
            strcmp(s->level[RESULT].key, "content") == 0)
                s->has_content = true;
}

static void close_level(struct mcp_stream *s)
{
        take_scalar(s);
        if (s->depth == PART && in_part(s))
                end_part(s);
        s->depth -= s->depth > 0;
        s->is_key = false;
}

static void outside(struct mcp_stream *s, char c)
{
        bool kept = in_part(s);
        switch (c) {
        case '"':
                s->in_string = true;
                s->escaped = false;
                s->string_at = s->part.n;
                if (kept)
                        keep(s, c);
                return;
        case '{':
        case '[':
                open_level(s, c == '{');
                if (in_part(s))
                        keep(s, c);
                return;
        case '}':
        case ']':
                if (kept)
                        keep(s, c);
                close_level(s);
                return;
        case ',':
                take_scalar(s);
                s->is_key =
                    s->depth >= 1 && (s->depth > MCP_STREAM_LEVELS || s->level[s->depth].object);
                break;
        case ':':
                s->is_key = false;
                break;
        default:
                if (s->depth <= RESULT && c > ' ')
                        buf_putc(&s->scalar, c);
        }
        if (kept)
                keep(s, c);
}

/* Raw bytes that are wanted whole: structured content, and an error. */
static void take_raw(struct mcp_stream *s, char c, uint32_t depth, bool structured)
{
        bool plain = !s->in_string && depth == RESULT && s->depth <= RESULT;
        if (structured && plain && (c == ',' || s->depth < RESULT))
                s->in_structured = false;
        else if (structured && !(plain && c == ':'))
                give(s, &c, 1);
        if (strcmp(s->level[MESSAGE].key, "error") == 0)
                buf_putc(&s->error, c);
}

/* The bytes of a string that goes out, up to the next that means something else. */
static size_t plain_run(const struct mcp_stream *s, const char *p, size_t n)
{
        if (!s->streaming || s->escaped || s->hex || s->high)
                return 0;
        const char *quote = memchr(p, '"', n);
        size_t most = quote ? (size_t)(quote - p) : n;
        const char *escape = memchr(p, '\\', most);
        return escape ? (size_t)(escape - p) : most;
}

int mcp_stream_feed(struct mcp_stream *s, const char *p, size_t n)
{
        if (s->sink && !s->failed && !json_stream_feed(&s->check, p, n))
                s->failed = STENO_EPROTO;
        for (size_t i = 0; i < n && !s->failed; i++) {
                uint32_t depth = s->depth;
                bool structured = s->in_structured;
                size_t run = plain_run(s, p + i, n - i);
                if (run) {
                        give(s, p + i, run);
                        i += run - 1;
                        continue;
                }
                if (s->in_string)
                        in_string(s, p[i]);
                else
                        outside(s, p[i]);
                if (structured || depth >= RESULT || s->depth >= RESULT)
                        take_raw(s, p[i], depth, structured);
        }
        flush(s);
        return s->failed;
}

int mcp_stream_finish(
    struct mcp_stream *s, uint64_t id, struct buf *answer, struct steno_error *err)
{
        flush(s);
        if (s->failed == 0 && !json_stream_finish(&s->check))
                s->failed = STENO_EPROTO;
        if (s->failed == 0 && (s->has_method || !(s->has_result || s->has_error)))
                s->failed = STENO_EPROTO;
        if (s->failed == STENO_EPROTO)
                return error_set(err, STENO_EPROTO,
                    "its answer is not JSON-RPC, is nested deeper than %d levels, or broke off",
                    JSON_DEPTH_MAX);
        if (s->failed == 0 && s->has_id && s->id != id)
                return error_set(err, STENO_EPROTO, "its answer is to another request");
        if (s->failed == 0 && s->has_result && !s->has_content)
                return error_set(err, STENO_EPROTO, "the result has no content");
        if (s->failed)
                return error_set(err, s->failed, "its answer could not be stored");
        struct jsonw w = jsonw_to(answer);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "jsonrpc", "2.0");
        jsonw_field_u64(&w, "id", id);
        if (s->has_error) {
                bool whole = !s->error.failed && json_valid(s->error.p, s->error.n, NULL);
                jsonw_field_raw(&w, "error",
                    whole
                        ? buf_str(&s->error)
                        : STR("{\"code\":-32603,\"message\":\"an error with a very long text\"}"));
        } else {
                jsonw_key(&w, "result");
                jsonw_object(&w);
                jsonw_field_raw(&w, "content", STR("[]"));
                jsonw_field_bool(&w, "isError", s->is_error);
                jsonw_object_end(&w);
        }
        jsonw_object_end(&w);
        return buf_check(answer, err);
}
