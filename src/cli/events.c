/*
 * events.c - printing a run's events (events.h).
 *
 * The model's text is data and goes to standard output. What tools do is a remark. Everything in an
 * event came from outside, so it is made safe before it is printed on a terminal.
 */
#include "cli/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/callview.h"
#include "cli/term.h"
#include "model/event.h"

static void end_text(struct events *e)
{
        if (!e->in_text)
                return;
        out_text_end(e->out);
        if (e->in_thinking)
                out_plain(e->out);
        out_puts(e->out, "\n");
        e->in_text = e->in_thinking = false;
}

static void put_text(struct events *e, const struct json *j, bool thinking)
{
        struct buf text;
        if (e->in_text && e->in_thinking != thinking)
                end_text(e);
        if (!e->in_text && thinking) {
                out_style(e->out, "2");
                out_puts(e->out, "┊ ");
        }
        buf_init(&text, 0);
        json_string(j, json_get(j, 0, "text"), &text, NULL);
        out_text_piece(e->out, buf_str(&text));
        buf_release(&text);
        e->in_text = true;
        e->in_thinking = thinking;
}

/* ---- remarks ---- */

static unsigned width_of(const struct events *e)
{
        return e->width ? e->width : EVENTS_WIDTH;
}

static void style(const struct events *e, struct buf *b, const char *sgr)
{
        if (e->colours)
                buf_printf(b, "\033[%sm", sgr);
}

/* A member in one row, safe and not too long. */
static void put_member(struct buf *b, const struct json *j, const char *key, unsigned columns)
{
        struct buf text;
        buf_init(&text, 0);
        json_string(j, json_get(j, 0, key), &text, NULL);
        callview_put_row(b, "", buf_str(&text), columns);
        buf_release(&text);
}

static void put_start(const struct events *e, struct buf *b, const struct json *j)
{
        struct buf args;
        char *tool = json_dup_string(j, json_get(j, 0, "toolName"));
        buf_init(&args, 0);
        json_string(j, json_get(j, 0, "arguments"), &args, NULL);
        style(e, b, "1;33");
        buf_puts(b, "→ ");
        size_t from = b->n;
        put_member(b, j, "toolName", 64);
        unsigned used = 4 + (unsigned)(b->n - from);
        style(e, b, "0");
        buf_puts(b, "  ");
        if (tool)
                callview_put_row(
                    b, tool, buf_str(&args), width_of(e) > used + 20 ? width_of(e) - used : 20);
        buf_putc(b, '\n');
        buf_release(&args);
        free(tool);
}

static void put_step(const struct events *e, struct buf *b, const struct json *j)
{
        uint64_t done = 0, total = 0;
        style(e, b, "2");
        buf_puts(b, "  · ");
        put_member(b, j, "text", width_of(e) > 50 ? width_of(e) - 30 : 20);
        if (json_u64(j, json_get(j, 0, "progress"), &done))
                buf_printf(b, " %llu", (unsigned long long)done);
        if (json_u64(j, json_get(j, 0, "total"), &total))
                buf_printf(b, "/%llu", (unsigned long long)total);
        style(e, b, "0");
        buf_putc(b, '\n');
}

static void put_end(const struct events *e, struct buf *b, const struct json *j, bool failed)
{
        double ms = 0;
        int64_t code = 0;
        struct buf content;
        buf_init(&content, 0);
        json_string(j, json_get(j, 0, "content"), &content, NULL);
        style(e, b, failed ? "1;31" : "1;32");
        buf_puts(b, failed ? "✗ " : "✓ ");
        put_member(b, j, "toolName", 64);
        style(e, b, "0");
        style(e, b, "2");
        if (json_double(j, json_get(j, 0, "duration"), &ms)) {
                buf_puts(b, "  ");
                term_duration(b, ms);
        }
        if (json_i64(j, json_get(j, 0, "exitCode"), &code))
                buf_printf(b, ", exit %lld", (long long)code);
        style(e, b, "0");
        buf_putc(b, '\n');
        callview_put_result(b, buf_str(&content), width_of(e), e->colours ? "2" : NULL);
        buf_release(&content);
}

static void put_complete(const struct events *e, struct buf *b, const struct json *j)
{
        put_end(e, b, j, false);
}

static void put_failed(const struct events *e, struct buf *b, const struct json *j)
{
        put_end(e, b, j, true);
}

/* A call that waits, and what answers it from another terminal. */
static void put_approval(const struct events *e, struct buf *b, const struct json *j)
{
        if (e->asks || !json_is(j, json_get(j, 0, "state"), "pending"))
                return;
        char *run = json_dup_string(j, json_get(j, 0, "runId"));
        char *call = json_dup_string(j, json_get(j, 0, "toolCallId"));
        style(e, b, "1;33");
        buf_puts(b, "? ");
        put_member(b, j, "toolName", 64);
        style(e, b, "0");
        buf_puts(b, " waits for permission: steno approve ");
        callview_put_word(b, run ? run : "");
        buf_putc(b, ' ');
        callview_put_word(b, call ? call : "");
        buf_putc(b, '\n');
        free(run);
        free(call);
}

/* One row: the lead and a member, or the member `code` before it. */
struct notice {
        const char *sgr;
        const char *lead;
        const char *code; /* NULL: none */
        const char *text;
};

static void put_notice(
    const struct events *e, struct buf *b, const struct json *j, const struct notice *n)
{
        style(e, b, n->sgr);
        buf_puts(b, n->lead);
        if (n->code) {
                put_member(b, j, n->code, 40);
                buf_puts(b, ": ");
        }
        put_member(b, j, n->text, 400);
        style(e, b, "0");
        buf_putc(b, '\n');
}

static void put_dropped(const struct events *e, struct buf *b, const struct json *j)
{
        put_notice(e, b, j, &(struct notice){"33", "! this reply was dropped: ", NULL, "reason"});
}

static void put_retry(const struct events *e, struct buf *b, const struct json *j)
{
        put_notice(e, b, j,
            &(struct notice){"33", "! the model is asked again after ", "code", "message"});
}

static void put_error(const struct events *e, struct buf *b, const struct json *j)
{
        put_notice(e, b, j, &(struct notice){"31", "✗ ", "code", "message"});
}

/* Only ends that had no run_error before them. */
static void put_finished(const struct events *e, struct buf *b, const struct json *j)
{
        json_ref reason = json_get(j, 0, "reason");
        if (json_is(j, reason, "length") || json_is(j, reason, "content_filter"))
                put_notice(e, b, j, &(struct notice){"33", "! the run ended: ", NULL, "reason"});
}

/* How each event is shown. An event without a row is not shown. */
static void (*const remarks[STENO_EVENT_COUNT + 1])(
    const struct events *e, struct buf *b, const struct json *j) = {
    [STENO_EVENT_TOOL_CALL_START] = put_start,
    [STENO_EVENT_TOOL_CALL_STEP] = put_step,
    [STENO_EVENT_TOOL_CALL_APPROVAL] = put_approval,
    [STENO_EVENT_TOOL_CALL_COMPLETE] = put_complete,
    [STENO_EVENT_TOOL_CALL_ERROR] = put_failed,
    [STENO_EVENT_MESSAGE_DROPPED] = put_dropped,
    [STENO_EVENT_MODEL_RETRY] = put_retry,
    [STENO_EVENT_RUN_ERROR] = put_error,
    [STENO_EVENT_RUN_FINISHED] = put_finished,
};

static void put_for_person(struct events *e, enum steno_event type, const struct json *j)
{
        bool text = type == STENO_EVENT_MESSAGE;
        if (text || type == STENO_EVENT_THINKING) {
                if (text || e->out->tty)
                        put_text(e, j, !text);
                return;
        }
        struct buf line;
        buf_init(&line, 0);
        if (remarks[type])
                remarks[type](e, &line, j);
        end_text(e);
        if (line.n && !e->quiet) {
                if (e->remarks_out)
                        out_str(e->out, buf_str(&line));
                out_flush(e->out);
                if (!e->remarks_out && !line.failed)
                        term_stderr(buf_str(&line));
        }
        buf_release(&line);
}

static void put_json(struct events *e, uint64_t seq, const char *type, struct str data)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_u64(&w, "seq", seq);
        jsonw_field_cstr(&w, "type", type);
        jsonw_field_raw(&w, "data", data);
        jsonw_object_end(&w);
        buf_putc(&b, '\n');
        out_text(e->out, buf_str(&b));
        buf_release(&b);
}

void events_print(struct events *e, uint64_t seq, const char *type, const char *data, size_t n)
{
        struct json j;
        json_init(&j);
        if (e->json)
                put_json(e, seq, type, str_span(data, n));
        else if (json_parse(&j, data, n, NULL, NULL) == 0)
                put_for_person(e, event_find(type), &j);
        json_release(&j);
        out_flush(e->out);
}
