/*
 * api_view.c - steno_view of steno.h: a stored history for a reader.
 *
 * An openai view without edits streams (view_stream.h). A view with a budget or a token limit reads
 * from the end (view_tail.h). Every other view holds its page (view_hub.h), because formats with
 * turns, and the other strategies, need all of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "api/api_recover.h"
#include "api/carry.h"
#include "api/api_run.h"
#include "api/api_store.h"
#include "api/view_stored.h"
#include "api/view_stream.h"
#include "api/view_tail.h"
#include "view/strategies.h"

/* ---- a conversation as a source ---- */

struct conv_source {
        struct steno_conv *conv;
        struct api_run_knowledge runs;
};

static int source_last(void *ctx, uint64_t *seq, struct steno_error *err)
{
        struct conv_source *s = ctx;
        return backend_last(s->conv->backend, seq, NULL, err);
}

static int source_read(
    void *ctx, uint64_t after, backend_record_fn each, void *each_ctx, struct steno_error *err)
{
        struct conv_source *s = ctx;
        return backend_read(s->conv->backend, after, each, each_ctx, err);
}

static int source_amendments(
    void *ctx, backend_record_fn each, void *each_ctx, struct steno_error *err)
{
        struct conv_source *s = ctx;
        return backend_read_amendments(s->conv->backend, each, each_ctx, err);
}

static int take_seq(void *ctx, const struct backend_record *r)
{
        *(uint64_t *)ctx = r->rec.seq;
        return 0;
}

static int source_seq_of(void *ctx, const char *id, uint64_t *seq, struct steno_error *err)
{
        struct conv_source *s = ctx;
        return backend_read_id(s->conv->backend, str_of(id), take_seq, seq, err);
}

static int source_carry(
    void *ctx, struct carry_out *c, steno_sink sink, void *sink_ctx, struct steno_error *err)
{
        struct conv_source *s = ctx;
        c->conv = s->conv;
        return carry_out(c, sink, sink_ctx, err);
}

static int source_original(void *ctx, struct carry_out *c, steno_sink sink, void *sink_ctx,
    bool *rendering, struct steno_error *err)
{
        struct conv_source *s = ctx;
        c->conv = s->conv;
        return carry_original(c, sink, sink_ctx, rendering, err);
}

/* Is the output whole that the view would show? The stub says so where the output was deleted or is
 * still being written, and it stands for an output that is not text. */
static bool has_output(struct steno_conv *conv, struct str ref)
{
        struct artifact_info info;
        if (!ref.n)
                return true;
        if (backend_artifact_find(conv->backend, ref, &info, NULL))
                return false;
        if (info.state != ARTIFACT_CLOSED)
                return info.state == ARTIFACT_DELETED || info.live;
        return !info.utf8 || backend_artifact_verify(conv->backend, &info, NULL) == 0;
}

/* Bytes that the sink has got cannot be taken back, so all files are read once before. */
static enum view_lack source_lack(void *ctx, const struct about *about, bool full)
{
        struct conv_source *s = ctx;
        size_t parts = full ? about_part_slots(about) : about->part_count;
        for (size_t i = 0; i < parts; i++) {
                struct about_part p = about_part_at(about, i);
                if (p.name.n &&
                    backend_part_get(s->conv->backend, p.name, p.size, NULL, NULL, NULL))
                        return i < about->part_count ? VIEW_LACKS_PART : VIEW_LACKS_OUTPUT;
        }
        for (size_t i = 0; full && i < about_ref_slots(about); i++)
                if (!has_output(s->conv, about_ref_at(about, i)))
                        return VIEW_LACKS_OUTPUT;
        return VIEW_LACKS_NOTHING;
}

static enum repair_class source_classify(
    void *ctx, struct str run, uint64_t seq, struct str call, struct repair_facts *facts)
{
        struct conv_source *s = ctx;
        return api_run_classify(&s->runs, run, seq, call, facts);
}

/* ---- the view ---- */

struct view {
        struct view_source source;
        struct view_hub hub;
        struct view_out *out;
        struct view_report report;
        struct feed_options feed;
        bool stream;
        bool stored; /* no format: the messages as they came */
        bool own;    /* the same, alone, for the client that sent them, */
        bool mixed;  /* among messages of other formats */
        const char *pin;
        struct steno_error *err;
};

#define OPT(field, fallback) OPTION(opt, struct steno_view_options, field, fallback)

/* "stored" is a view and no format: nothing can be appended in it. */
static int unknown_format(const char *name, struct steno_error *err)
{
        char names[240];
        format_names(names, sizeof names);
        return error_set(
            err, STENO_EINVAL, "format \"%.40s\" is not one of %s, stored", name, names);
}

static int read_options(struct view *v, const struct steno_view_options *opt)
{
        int rc = optstruct_check(opt, sizeof *opt, v->err);
        if (rc)
                return rc;
        const char *name = OPT(format, NULL);
        v->stored = name && strcmp(name, "stored") == 0;
        const struct format *format = format_find(name && !v->stored ? name : "openai");
        int outputs = OPT(outputs, STENO_OUTPUTS_DEFAULT);
        if (!format)
                return unknown_format(name, v->err);
        if (outputs < STENO_OUTPUTS_DEFAULT || outputs > STENO_OUTPUTS_FULL)
                return error_set(v->err, STENO_EINVAL, "outputs %d is not stub or full", outputs);
        v->feed = (struct feed_options){.after = OPT(after_seq, 0),
            .before = OPT(before_seq, 0),
            .limit = OPT(limit, 0),
            .last = OPT(last, 0),
            /* Pages show all messages. Only models do not see those that are off the context. */
            .all_messages = OPT(all_messages, false) || strcmp(format->name, "chat") == 0};
        v->hub.format = format;
        v->hub.outputs = outputs;
        v->hub.edit_strategies = OPT(edit_strategies, NULL);
        v->hub.budget = OPT(budget, 0);
        v->hub.count_tokens = OPT(count_tokens, false);
        v->hub.strict = OPT(strict, false);
        v->hub.via = str_of(OPT(via, NULL));
        v->hub.pin = UINT64_MAX;
        v->pin = OPT(pin, NULL);
        v->report.no_ids = OPT(no_ids, false);
        if (v->hub.edit_strategies && !*v->hub.edit_strategies)
                v->hub.edit_strategies = NULL;
        v->own = !v->stored && OPT(own_bytes, false);
        v->hub.every = OPT(every_message, false);
        if ((v->stored || v->own) &&
            (v->hub.edit_strategies || v->hub.budget || outputs == STENO_OUTPUTS_STUB))
                return error_set(v->err, STENO_EINVAL,
                    "the format stored takes no edits, no budget and no stubs");
        v->stream = format->ready && !v->hub.edit_strategies && !v->hub.budget && !v->hub.strict &&
                    !v->hub.every;
        return 0;
}

/* An unknown pin pins nothing. */
static int find_pin(struct view *v)
{
        if (!v->pin || !*v->pin)
                return 0;
        struct steno_error err = {0};
        uint64_t seq = 0;
        int rc = v->source.seq_of(v->source.ctx, v->pin, &seq, &err);
        if (rc == STENO_ENOTFOUND)
                return 0;
        if (rc) {
                if (v->err)
                        *v->err = err;
                return rc;
        }
        v->hub.pin = seq;
        buf_puts(&v->report.edit_at, v->pin);
        return 0;
}

struct taking {
        struct view *v;
        struct view_stream *stream;
        struct buf last_id;
};

static int take_item(void *ctx, const struct feed_item *item)
{
        struct taking *t = ctx;
        if (item->lost && t->v->hub.every)
                return view_hub_add_lost(&t->v->hub, item);
        if (item->lost)
                return view_hub_tell_lost(&t->v->hub, item);
        if (!item->damaged && t->v->report.wanted) {
                buf_clear(&t->last_id);
                buf_put_str(&t->last_id, item->id);
        }
        if (t->stream)
                return view_stream_take(t->stream, item);
        view_report_seq(&t->v->report, item->seq);
        return view_hub_add(&t->v->hub, item);
}

static int make_stored(struct view *v)
{
        int rc = view_out_put(v->out, STR("["));
        if (!rc)
                rc = view_stored_write(&v->source, &v->feed, v->own ? v->hub.format : NULL,
                    v->mixed ? &v->hub : NULL, v->out, &v->report, v->err);
        if (!rc)
                rc = view_out_put(v->out, STR("]"));
        return rc ? rc : view_out_flush(v->out);
}

/* All messages of the page, to the stream or to the hub, which then holds them. */
static int make_page(struct view *v, struct taking *t, struct feed_page *page, struct str *json)
{
        struct view_feed *feed = NULL;
        int rc = view_feed_open(&v->source, v->feed.after, &feed, v->err);
        if (!rc)
                rc = view_feed_read(feed, &v->feed, take_item, t, page, v->err);
        view_feed_close(feed);
        if (rc)
                return rc;
        return t->stream ? view_stream_end(t->stream) : view_hub_write(&v->hub, json);
}

static int make(struct view *v, struct view_stream *stream)
{
        struct feed_page page;
        struct taking t = {.v = v, .stream = v->stream ? stream : NULL};
        struct str json = {0};
        buf_init(&t.last_id, 0);
        int rc = view_out_put(v->out, STR("["));
        if (!rc && view_tail_is_for(&v->hub, &v->feed))
                rc = view_tail_write(&v->hub, &v->feed, &page, &t.last_id, &json);
        else if (!rc)
                rc = make_page(v, &t, &page, &json);
        if (!rc)
                rc = view_out_elements(v->out, json);
        if (!rc)
                rc = view_out_put(v->out, STR("]"));
        if (!rc)
                rc = view_out_flush(v->out);
        if (!rc) {
                v->report.last_seq = page.last_seq;
                v->report.has_more = page.has_more;
                v->report.counted = v->report.counted || v->hub.count_tokens;
                if (!v->report.edit_at.n)
                        buf_put_str(&v->report.edit_at, buf_str(&t.last_id));
        }
        buf_release(&t.last_id);
        return rc;
}

/* Strategies are read before anything is written, so that a mistake in them is the answer. */
static int check_strategies(const struct view *v)
{
        struct arena arena;
        struct strategy *list;
        size_t count;
        if (!v->hub.edit_strategies || strcmp(v->hub.edit_strategies, "auto") == 0)
                return 0;
        arena_init(&arena);
        int rc = strategies_parse(str_of(v->hub.edit_strategies), &arena, &list, &count, v->err);
        arena_release(&arena);
        return rc;
}

static int view_of(struct steno_conv *conv, const struct steno_view_options *opt, steno_sink sink,
    void *ctx, char **report, struct steno_error *err)
{
        struct conv_source source = {.conv = conv};
        struct view_stream stream = {0};
        struct view *v = calloc(1, sizeof *v);
        struct view_out *out = malloc(sizeof *out);
        if (!v || !out) {
                free(v);
                free(out);
                return error_nomem(err);
        }
        out->sink = sink;
        out->ctx = ctx;
        out->err = err;
        out->used = 0;
        out->comma = false;
        v->out = out;
        v->err = v->hub.err = err;
        v->source = (struct view_source){.ctx = &source,
            .last = source_last,
            .read = source_read,
            .amendments = source_amendments,
            .seq_of = source_seq_of,
            .carry = source_carry,
            .original = source_original,
            .lack = source_lack,
            .classify = source_classify};
        api_run_knowledge_init(&source.runs, conv->backend);
        view_report_init(&v->report, report != NULL);
        v->hub.source = &v->source;
        v->hub.report = &v->report;
        view_hub_init(&v->hub);
        stream.hub = &v->hub;
        stream.out = out;
        view_stream_init(&stream);

        int rc = read_options(v, opt);
        stream.copy = !v->hub.count_tokens;
        if (!rc)
                rc = check_strategies(v);
        if (!rc)
                rc = find_pin(v);
        if (!rc && v->own) {
                bool own = true;
                rc = view_stored_look(&v->source, &v->feed, v->hub.format, &own, &v->mixed, err);
                v->own = own || !v->mixed;
                v->hub.outputs = STENO_OUTPUTS_FULL;
        }
        if (!rc)
                rc = v->stored || v->own ? make_stored(v) : make(v, &stream);
        if (!rc && report)
                rc = view_report_json(&v->report, report, err);
        view_stream_release(&stream);
        view_hub_release(&v->hub);
        view_report_release(&v->report);
        api_run_knowledge_release(&source.runs);
        free(out);
        free(v);
        return rc;
}

int steno_view(struct steno_conv *conv, const struct steno_view_options *opt, steno_sink sink,
    void *ctx, char **report, struct steno_error *err)
{
        struct steno_conv *shown = api_recover_to_read(conv);
        int rc = view_of(shown ? shown : conv, opt, sink, ctx, report, err);
        steno_conv_close(shown);
        return rc;
}
