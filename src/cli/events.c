/*
 * events.c - printing a run's events (events.h).
 *
 * Text is data and goes to standard output; what tools do is a remark. Everything in an event came
 * from outside and is made safe before a terminal sees it.
 */
#include "cli/events.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/term.h"

#define LINE_COLUMNS 200 /* of arguments and results in a remark */

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
        if (!e->in_text && thinking)
                out_style(e->out, "2");
        buf_init(&text, 0);
        json_string(j, json_get(j, 0, "text"), &text, NULL);
        out_text_piece(e->out, buf_str(&text));
        buf_release(&text);
        e->in_text = true;
        e->in_thinking = thinking;
}

/* A member's first line, safe and not too long. */
static void put_member(struct buf *b, const struct json *j, const char *key)
{
        struct buf text, safe;
        buf_init(&text, 0);
        buf_init(&safe, 0);
        json_string(j, json_get(j, 0, key), &text, NULL);
        while (text.n && text.p[text.n - 1] == '\n')
                text.n--;
        size_t line = 0;
        while (line < text.n && text.p[line] != '\n' && text.p[line] != '\r')
                line++;
        text_for_terminal(&safe, str_span(text.p, line), false);
        size_t fit = term_fit(buf_str(&safe), LINE_COLUMNS);
        buf_put(b, safe.p, fit);
        if (fit < safe.n || line < text.n)
                buf_puts(b, "...");
        buf_release(&safe);
        buf_release(&text);
}

static void put_duration(struct buf *b, const struct json *j)
{
        double ms = 0;
        if (!json_double(j, json_get(j, 0, "duration"), &ms))
                return;
        buf_puts(b, " (");
        term_duration(b, ms);
        buf_putc(b, ')');
}

/* The remark that an event is worth; nothing for most. */
static void put_remark(struct buf *b, const char *type, const struct json *j)
{
        if (strcmp(type, "tool_call_start") == 0) {
                buf_puts(b, "> ");
                put_member(b, j, "toolName");
                buf_putc(b, ' ');
                put_member(b, j, "arguments");
        } else if (strcmp(type, "tool_call_step") == 0) {
                buf_puts(b, "  . ");
                put_member(b, j, "text");
        } else if (strcmp(type, "tool_call_approval") == 0) {
                if (json_is(j, json_get(j, 0, "state"), "denied"))
                        buf_puts(b, "  permission denied");
        } else if (strcmp(type, "tool_call_complete") == 0) {
                buf_puts(b, "  = ");
                put_member(b, j, "content");
                put_duration(b, j);
        } else if (strcmp(type, "tool_call_error") == 0) {
                buf_puts(b, "  ! ");
                put_member(b, j, "content");
                put_duration(b, j);
        } else if (strcmp(type, "message_dropped") == 0) {
                buf_puts(b, "! reply dropped: ");
                put_member(b, j, "reason");
        } else if (strcmp(type, "model_retry") == 0) {
                buf_puts(b, "! again, after ");
                put_member(b, j, "code");
                buf_puts(b, ": ");
                put_member(b, j, "message");
        } else if (strcmp(type, "run_error") == 0) {
                buf_puts(b, "! ");
                put_member(b, j, "code");
                buf_puts(b, ": ");
                put_member(b, j, "message");
        } else if (strcmp(type, "run_finished") == 0 &&
                   !json_is(j, json_get(j, 0, "reason"), "stop")) {
                buf_puts(b, "! the run ended: ");
                put_member(b, j, "reason");
        }
}

static void put_for_person(struct events *e, const char *type, const struct json *j)
{
        bool text = strcmp(type, "message") == 0;
        if (text || strcmp(type, "thinking") == 0) {
                if (text || e->out->tty)
                        put_text(e, j, !text);
                return;
        }
        struct buf line;
        buf_init(&line, 0);
        put_remark(&line, type, j);
        end_text(e);
        if (line.n && !e->quiet) {
                buf_putc(&line, '\n');
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
        jsonw_key(&w, "seq");
        jsonw_u64(&w, seq);
        jsonw_key(&w, "type");
        jsonw_cstr(&w, type);
        jsonw_key(&w, "data");
        jsonw_raw(&w, data);
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
                put_for_person(e, type, &j);
        json_release(&j);
        out_flush(e->out);
}
