/*
 * transcript.c - see transcript.h. Headings, days, amendments and damage; what stands below a
 * heading is in transcript_piece.c.
 */
#include "cli/transcript.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/pieces.h"
#include "cli/term.h"
#include "cli/wrap.h"

#define WIDTH_MAX 110 /* longer rows are hard to read */

void transcript_init(struct transcript *t, struct cli *c, bool full)
{
        memset(t, 0, sizeof(*t));
        t->c = c;
        t->full = full;
        t->width = term_width() < WIDTH_MAX ? term_width() : WIDTH_MAX;
        json_init(&t->open_json);
}

void transcript_release(struct transcript *t)
{
        for (size_t i = 0; i < t->change_count; i++)
                free(t->changes[i].target);
        free(t->changes);
        t->changes = NULL;
        t->change_count = t->change_cap = 0;
        json_release(&t->open_json);
        steno_free(t->open);
        t->open = NULL;
}

void transcript_learn_open(struct transcript *t)
{
        if (steno_conv_recover(t->c->conv, &t->open, NULL) == 0)
                json_parse(&t->open_json, t->open, strlen(t->open), NULL, NULL);
}

/* ---- amendments ---- */

static int by_target(const void *a, const void *b)
{
        const struct transcript_change *x = a, *y = b;

        return strcmp(x->target, y->target);
}

int transcript_learn(struct transcript *t, const struct steno_record *r)
{
        const char *kind = steno_record_kind(r);
        const char *target = steno_record_target(r);
        bool deleted = strcmp(kind, "delete") == 0;
        struct transcript_change *to;

        if (target == NULL || (!deleted && strcmp(kind, "supersede") != 0))
                return 0;
        if (!grow_room(t->changes, t->change_count, t->change_cap))
                return STENO_ENOMEM;
        to = &t->changes[t->change_count];
        *to = (struct transcript_change){strdup(target), steno_record_seq(r), deleted};
        if (to->target == NULL)
                return STENO_ENOMEM;
        t->change_count++;
        return 0;
}

static const struct transcript_change *change_of(struct transcript *t, const char *id)
{
        struct transcript_change key = {.target = (char *)id};

        if (t->change_count == 0 || id == NULL)
                return NULL;
        return bsearch(&key, t->changes, t->change_count, sizeof(key), by_target);
}

/* ---- headings ---- */

static void put_title(struct transcript *t, const struct json *j)
{
        struct out *o = &t->c->out;
        struct buf title;

        buf_init(&title, 0);
        json_string(j, json_get(j, 0, "title"), &title, NULL);
        if (title.n > 0) {
                out_style(o, "1");
                wrap_one_line(o, buf_str(&title), t->width);
                out_plain(o);
                out_puts(o, "\n");
        }
        buf_release(&title);
}

/* Where it is from: an import with its model, or a recorded client. */
static void put_source(struct buf *line, const struct json *j)
{
        json_ref import = json_get(j, 0, "import"), gateway = json_get(j, 0, "gateway");
        const struct {
                json_ref of;
                const char *name, *before;
        } rows[] = {{import, "tool", " · imported from "}, {import, "version", " "},
            {import, "model", " · "}, {gateway, "upstream", " · recorded from "}};

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                json_ref v = json_get(j, rows[i].of, rows[i].name);

                if (json_type(j, v) == JSON_STRING && json_inner(j, v).n > 0) {
                        buf_puts(line, rows[i].before);
                        json_string(j, v, line, NULL);
                }
        }
}

int transcript_heading(struct transcript *t)
{
        struct out *o = &t->c->out;
        struct steno_error err = {0};
        struct json j;
        struct buf line;
        char *meta = NULL;
        uint64_t last = 0;

        int rc = steno_conv_meta(t->c->conv, &meta, &err);
        if (rc == STENO_ECORRUPT)
                rc = 0; /* it has lost its title, and no record */
        if (rc < 0 || steno_conv_last_seq(t->c->conv, &last, &err) < 0) {
                steno_free(meta);
                return cli_fail(t->c, &err);
        }
        json_init(&j);
        buf_init(&line, 0);
        if (meta && json_parse(&j, meta, strlen(meta), NULL, NULL) == 0)
                put_title(t, &j);
        buf_printf(&line, "%s · %s · ", steno_conv_id(t->c->conv), steno_conv_project(t->c->conv));
        text_put_grouped(&line, last);
        buf_puts(&line, last == 1 ? " record" : " records");
        put_source(&line, &j);
        out_style(o, "2");
        wrap_one_line(o, buf_str(&line), t->width);
        out_plain(o);
        out_puts(o, "\n");
        buf_release(&line);
        json_release(&j);
        steno_free(meta);
        if (t->change_count > 0)
                qsort(t->changes, t->change_count, sizeof(*t->changes), by_target);
        return 0;
}

static bool local_time(const char *iso, struct tm *tm)
{
        int64_t ms;

        if (iso == NULL || !time_parse(iso, strlen(iso), &ms))
                return false;
        time_t s = (time_t)(ms / 1000);
        return localtime_r(&s, tm) != NULL;
}

static void put_day(struct transcript *t, const struct tm *tm)
{
        char text[64];
        int day = (tm->tm_year + 1900) * 10000 + (tm->tm_mon + 1) * 100 + tm->tm_mday;

        if (day == t->day)
                return;
        t->day = day;
        strftime(text, sizeof(text), "\n── %A, %-d %B %Y ", tm);
        out_style(&t->c->out, "2");
        out_puts(&t->c->out, text);
        for (unsigned at = term_columns(str_of(text + 1)); at < t->width; at++)
                out_puts(&t->c->out, "─");
        out_plain(&t->c->out);
        out_puts(&t->c->out, "\n");
}

void transcript_row(struct transcript *t, const struct steno_record *r, const char *sgr,
    const char *mark, struct str label, struct str details)
{
        struct out *o = &t->c->out;
        struct buf left, right;
        struct tm tm;
        char clock[16] = "";

        if (local_time(steno_record_at(r), &tm)) {
                put_day(t, &tm);
                strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
        }
        buf_init(&left, 0);
        buf_init(&right, 0);
        term_cell(&left, label, 0);
        if (details.n > 0)
                buf_puts(&right, "  ");
        term_cell(&right, details, 0);
        unsigned used = 6 + term_columns(str_of(mark)) + term_columns(buf_str(&left));
        unsigned room = t->width > used + 12 ? t->width - used - 12 : 0;
        right.n = term_fit(buf_str(&right), room);
        used += term_columns(buf_str(&right));
        out_style(o, "2");
        out_printf(o, "\n%4llu  ", (unsigned long long)steno_record_seq(r));
        out_plain(o);
        out_style(o, sgr);
        out_puts(o, mark);
        out_str(o, buf_str(&left));
        out_plain(o);
        out_style(o, "2");
        out_str(o, buf_str(&right));
        for (; used + strlen(clock) < t->width; used++)
                out_puts(o, " ");
        out_puts(o, clock);
        out_plain(o);
        out_puts(o, "\n");
        buf_release(&right);
        buf_release(&left);
}

/* ---- records ---- */

static const char *role_style(struct str role)
{
        if (str_is(role, "user"))
                return "1;36";
        if (str_is(role, "assistant") || str_is(role, "model"))
                return "1;32";
        if (str_is(role, "system") || str_is(role, "developer"))
                return "1;35";
        return "1";
}

static void put_details(struct buf *b, const struct json *about, const struct json *message,
    const struct steno_record *r)
{
        json_ref request = json_is(message, json_get(message, 0, "partType"), "request")
                               ? json_get(message, 0, "request")
                               : JSON_NONE;
        uint32_t tools = json_count(message, json_get(message, request, "tools"));

        if (request != JSON_NONE)
                buf_puts(b, "prompt  ");
        if (json_string(
                message, json_get(message, request == JSON_NONE ? 0 : request, "model"), b, NULL))
                buf_puts(b, "  ");
        if (tools > 0)
                buf_printf(b, "%u %s  ", (unsigned)tools, tools == 1 ? "tool" : "tools");
        if (json_bool(about, json_get(about, 0, "off"), false))
                buf_puts(b, "kept out of contexts  ");
        if (json_bool(about, json_get(about, 0, "orphan"), false))
                buf_puts(b, "answers no call  ");
        if (json_bool(about, json_get(about, 0, "duplicate"), false))
                buf_puts(b, "a second answer  ");
        if (strcmp(steno_record_kind(r), "supersede") == 0 && steno_record_target(r) != NULL)
                buf_printf(b, "replaces %s", steno_record_target(r));
}

/* One line for what has no body of its own. */
static void put_event(struct transcript *t, const struct steno_record *r, const char *sgr,
    const char *words, const char *id)
{
        struct buf line;

        buf_init(&line, 0);
        buf_printf(&line, "%s%s%s", words, id ? " " : "", id ? id : "");
        transcript_row(t, r, sgr, "", buf_str(&line), STR(""));
        buf_release(&line);
}

/* What the gateway learnt of a reply: its model, why it ended, its tokens. False: something else.
 */
static bool put_reply_facts(struct transcript *t, const struct steno_record *r)
{
        static const char *const NAMES[] = {"model", "finish"};
        static const char *const TOKENS[][2] = {{"prompt_tokens", "completion_tokens"},
            {"input_tokens", "output_tokens"}, {"promptTokenCount", "candidatesTokenCount"}};
        struct json j;
        struct buf line;
        char *text = NULL;
        size_t n = 0;
        bool any = false;

        json_init(&j);
        buf_init(&line, 0);
        buf_puts(&line, "· reply of");
        if (steno_record_message(r, &text, &n, NULL) == 0 &&
            json_parse(&j, text, n, NULL, NULL) == 0) {
                json_ref facts = json_get(&j, 0, "gateway"), usage = json_get(&j, facts, "usage");

                for (size_t i = 0; i < 2; i++) {
                        buf_putc(&line, ' ');
                        any = json_string(&j, json_get(&j, facts, NAMES[i]), &line, NULL) || any;
                }
                for (size_t i = 0; i < sizeof(TOKENS) / sizeof(*TOKENS); i++) {
                        uint64_t in = 0, out = 0;

                        if (json_u64(&j, json_get(&j, usage, TOKENS[i][0]), &in) &&
                            json_u64(&j, json_get(&j, usage, TOKENS[i][1]), &out))
                                buf_printf(&line, ", %llu tokens in, %llu out",
                                    (unsigned long long)in, (unsigned long long)out);
                }
        }
        if (any)
                transcript_row(t, r, "2", "", buf_str(&line), STR(""));
        buf_release(&line);
        json_release(&j);
        steno_free(text);
        return any;
}

static void put_damage(struct transcript *t, const struct steno_record *r)
{
        put_event(t, r, "1;31", "✗ this record is damaged or lost (steno check says how)", NULL);
}

/* Marks, amendments and damage; true when nothing is left to show. */
static bool put_special(struct transcript *t, const struct steno_record *r)
{
        const char *kind = steno_record_kind(r);
        const struct transcript_change *change = change_of(t, steno_record_id(r));

        if (strcmp(kind, "damaged") == 0)
                put_damage(t, r);
        else if (strcmp(kind, "tombstone") == 0)
                put_event(t, r, "2", "· purged", NULL);
        else if (strcmp(kind, "delete") == 0)
                put_event(t, r, "2", "· deleted", steno_record_target(r));
        else if (strcmp(kind, "meta") == 0 && put_reply_facts(t, r))
                return true;
        else if (strcmp(kind, "meta") == 0)
                put_event(t, r, "2", "· changed the metadata of", steno_record_target(r));
        else if (change != NULL && change->seq > steno_record_seq(r))
                put_event(t, r, "2",
                    change->deleted ? "· a message that was deleted later:"
                                    : "· a message that was replaced later:",
                    steno_record_id(r));
        else
                return false;
        return true;
}

static void put_message(struct transcript *t, const struct steno_record *r,
    const struct json *message, const struct json *about)
{
        struct transcript_entry e = {.t = t, .r = r};
        struct buf role, details, ref;

        buf_init(&role, 0);
        buf_init(&details, 0);
        buf_init(&ref, 0);
        json_string(about, json_get(about, 0, "ref"), &ref, NULL);
        e.ref = buf_str(&ref);
        if (!json_string(message, json_get(message, 0, "role"), &role, NULL) &&
            !json_string(about, json_get(about, 0, "role"), &role, NULL))
                json_string(message, json_get(message, 0, "type"), &role, NULL);
        put_details(&details, about, message, r);
        e.dim = str_is(buf_str(&role), "system") || str_is(buf_str(&role), "developer");
        /* A tool's result is its own heading. */
        if (!str_is(buf_str(&role), "tool") || details.n > 0) {
                transcript_row(
                    t, r, role_style(buf_str(&role)), "", buf_str(&role), buf_str(&details));
                e.heading_done = true;
        }
        pieces_each(message, transcript_piece, &e);
        buf_release(&ref);
        buf_release(&details);
        buf_release(&role);
}

int transcript_record(struct transcript *t, const struct steno_record *r, struct steno_error *err)
{
        struct json message, about;
        struct str x;
        char *text = NULL;
        size_t n = 0;
        int rc = 0;

        if (put_special(t, r))
                return 0;
        json_init(&message);
        json_init(&about);
        x.p = steno_record_about(r, &x.n);
        if (x.p != NULL)
                json_parse(&about, x.p, x.n, NULL, NULL);
        rc = steno_record_message(r, &text, &n, err);
        if (rc == 0)
                rc = json_parse(&message, text, n, NULL, err);
        if (rc == 0)
                put_message(t, r, &message, &about);
        if (rc == STENO_ECORRUPT || rc == STENO_EPROTO) { /* a file of it is lost */
                put_damage(t, r);
                rc = 0;
        }
        json_release(&about);
        json_release(&message);
        steno_free(text);
        return rc;
}
