/*
 * api_convert.c - steno_convert: a history from one format to another, without a store.
 *
 * The same format is the identity. For a model (a provider's format) the history is repaired on
 * the way; for a page (`chat`) it is folded, and a result without a call is an error, as it is
 * when messages are folded one by one.
 */
#include "steno.h"

#include "api/api_store.h"
#include "base/error.h"
#include "format/report.h"
#include "model/fold.h"

struct conversion {
        const struct format *from;
        const struct format *to;
        struct json json;
        struct arena arena;
        struct buf out;
        struct report report;
        bool strict;
};

static const struct format *find(const char *name, struct steno_error *err)
{
        const struct format *f = format_find(name);
        if (!f)
                format_unknown(name, err);
        return f;
}

static int pair(struct conversion *c, struct history *h, struct steno_error *err)
{
        if (c->from == c->to && !c->strict)
                return repair_link(h, &c->arena) ? error_nomem(err) : 0;
        if (c->to == &format_chat)
                return fold_all(h, err);
        struct repair_options opt = {
            .synthesize = c->to->flags & (FORMAT_PROVIDER | FORMAT_ANSWERED),
            .on_note = report_repair,
            .note_ctx = &c->report,
        };
        struct history repaired;
        if (repair_history(h, &opt, &c->arena, &repaired))
                return error_nomem(err);
        *h = repaired;
        return 0;
}

static int convert(struct conversion *c, const char *json, size_t n, struct steno_error *err)
{
        struct history h;
        int rc = json_parse(&c->json, json, n, NULL, err);
        if (rc)
                return rc;
        if (json_type(&c->json, 0) != JSON_ARRAY && json_type(&c->json, 0) != JSON_OBJECT)
                return error_set(err, STENO_EPROTO, "a history is an array of messages");
        char candidates[200];
        if (!c->from)
                c->from = format_choose(&c->json, 0, &c->arena, candidates, sizeof candidates);
        if (!c->from && candidates[0])
                return error_set(
                    err, STENO_EPROTO, "the format cannot be detected: name it (%s)", candidates);
        if (!c->from) {
                format_names(candidates, sizeof candidates);
                return error_set(
                    err, STENO_EPROTO, "the messages are in no known format (%s)", candidates);
        }
        rc = format_read_history(c->from, &c->json, 0, &c->arena, &h, err);
        if (!rc)
                rc = pair(c, &h, err);
        if (rc)
                return rc;
        struct writer w = {
            .out = &c->out,
            .arena = &c->arena,
            .valid = c->from != c->to || c->strict,
            .strip_own = c->from != c->to || c->strict,
            .strict = c->strict,
            .on_loss = report_loss,
            .loss_ctx = &c->report,
            .on_repair = report_repair,
            .repair_ctx = &c->report,
        };
        buf_reserve(&c->out, n + n / 8); /* about what it takes: a buffer that grows is copied */
        return format_write_history(c->to, &w, &h, err);
}

static int make_report(const struct conversion *c, char **report, struct steno_error *err)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "from", c->from->name);
        jsonw_field_cstr(&w, "to", c->to->name);
        report_write(&c->report, &w);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        char *text = rc ? NULL : buf_take(&b, NULL);
        if (!rc && !text)
                rc = error_nomem(err);
        if (!rc)
                *report = text;
        buf_release(&b);
        return rc;
}

#define OPT(field, fallback) OPTION(opt, struct steno_convert_options, field, fallback)

int steno_convert_with(const struct steno_convert_options *opt, const char *json, size_t n,
    steno_sink sink, void *ctx, char **report, struct steno_error *err)
{
        const char *from = OPT(from, NULL);
        struct conversion c = {.to = find(OPT(to, NULL), err), .strict = OPT(strict, false)};
        if (!c.to)
                return STENO_EINVAL;
        if (from && !(c.from = find(from, err)))
                return STENO_EINVAL;
        json_init(&c.json);
        arena_init(&c.arena);
        buf_init(&c.out, 0);
        report_init(&c.report);
        char *text = NULL;
        int rc = convert(&c, json, n, err);
        if (!rc && report)
                rc = make_report(&c, &text, err);
        if (!rc && sink(ctx, c.out.p, c.out.n))
                rc = error_set(err, STENO_EINTERRUPTED, "stopped by the caller");
        if (!rc && report)
                *report = text;
        else
                steno_free(text);
        report_release(&c.report);
        buf_release(&c.out);
        arena_release(&c.arena);
        json_release(&c.json);
        return rc;
}

int steno_convert(const char *from, const char *to, const char *json, size_t n, steno_sink sink,
    void *ctx, char **report, struct steno_error *err)
{
        struct steno_convert_options opt = {.size = sizeof opt, .from = from, .to = to};
        return steno_convert_with(&opt, json, n, sink, ctx, report, err);
}
