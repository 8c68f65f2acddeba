/* view_stored.c - see view_stored.h */
#include "api/view_stored.h"

#include "base/error.h"
#include "base/json.h"
#include "api/view_amend.h"

struct storing {
        const struct view_source *source;
        struct feed_options opt;
        const struct format *own; /* NULL: with all that is known of them */
        struct view_hub *hub;     /* of pages with messages of other formats, which it holds */
        bool gathering;           /* it is being filled */
        struct view_out *out;     /* NULL: only counts */
        struct view_report *report;
        struct steno_error *err;
        struct amends amends;
        struct arena arena;
        struct buf id;
        struct buf head;
        struct buf meta;
        uint64_t skip; /* messages before the last n */
        uint64_t count;
};

static int put(struct storing *s, const struct backend_record *r, const struct amended *e,
    const struct about *about)
{
        struct carry_out c = {
            .m = e && e->by ? e->m : r->rec.m, .about = e && e->by ? &e->about : about};
        struct str fmt = e && e->by ? e->fmt : r->rec.fmt;
        bool rendering = false;
        struct steno_error why = {0};
        int rc = s->source->original(s->source->ctx, &c, NULL, NULL, &rendering, &why);
        bool lost = s->source->lack(s->source->ctx, c.about, false) == VIEW_LACKS_PART;
        /* An output that is gone is damage; an earlier version that kept a rendering only is not.
         */
        bool doubtful =
            rc || rendering || (!c.about->sha.n && (c.about->ref.n || c.about->out_count));
        bool gone = !lost && doubtful &&
                    s->source->lack(s->source->ctx, c.about, true) != VIEW_LACKS_NOTHING;
        lost = lost || (rc == STENO_ECORRUPT && !gone);
        if (rc && !lost && !gone) {
                if (s->err)
                        *s->err = why;
                return rc;
        }
        buf_clear(&s->head);
        buf_clear(&s->meta);
        rc = view_amends_meta(&s->amends, buf_str(&s->id), &s->meta, s->err);
        struct jsonw w = jsonw_to(&s->head);
        jsonw_object(&w);
        jsonw_field_u64(&w, "seq", r->rec.seq);
        jsonw_field_str(&w, "id", buf_str(&s->id));
        jsonw_field_str(&w, "at", r->rec.at);
        jsonw_field_str(&w, "fmt", fmt);
        jsonw_key(&w, lost ? "damaged" : "m");
        if (lost)
                jsonw_bool(&w, true);
        if (rc == 0)
                rc = buf_check(&s->head, s->err);
        if (rc == 0)
                rc = view_out_next(s->out);
        if (rc == 0)
                rc = view_out_put(s->out, buf_str(&s->head));
        if (rc == 0 && (lost || gone))
                view_report_damage(s->report, r->rec.seq, r->rec.seq);
        if (rc == 0 && gone)
                rc = s->source->carry(s->source->ctx, &c, view_out_sink, s->out, s->err);
        else if (rc == 0 && !lost)
                rc = s->source->original(
                    s->source->ctx, &c, view_out_sink, s->out, &rendering, s->err);
        if (rc == 0 && s->meta.n)
                rc = view_out_put(s->out, STR(",\"meta\":"));
        if (rc == 0 && s->meta.n)
                rc = view_out_put(s->out, buf_str(&s->meta));
        if (rc == 0 && gone)
                rc = view_out_put(
                    s->out, STR(",\"damaged\":true,\"note\":\"an output of it is missing\""));
        else if (rc == 0 && rendering)
                rc = view_out_put(s->out, STR(",\"note\":\"rendering only\""));
        return rc ? rc : view_out_put(s->out, STR("}"));
}

/* The message alone. */
static int put_own(struct storing *s, const struct backend_record *r, const struct amended *e,
    const struct about *about)
{
        bool replaced = e && e->by, rendering;
        struct carry_out c = {
            .m = replaced ? e->m : r->rec.m, .about = replaced ? &e->about : about};
        struct steno_error why = {0};
        int rc = s->source->original(s->source->ctx, &c, NULL, NULL, &rendering, &why);
        if (rc == STENO_ECORRUPT ||
            s->source->lack(s->source->ctx, c.about, true) != VIEW_LACKS_NOTHING) {
                view_report_damage(s->report, r->rec.seq, r->rec.seq);
                return 0;
        }
        if (rc && s->err)
                *s->err = why;
        view_report_id(s->report, buf_str(&s->id));
        if (rc == 0)
                rc = view_out_next(s->out);
        return rc ? rc
                  : s->source->original(
                        s->source->ctx, &c, view_out_sink, s->out, &rendering, s->err);
}

/* ---- messages of other formats ---- */

/* Calls and results have to know each other before one of them is written alone. */
static int gather(struct storing *s, const struct backend_record *r, const struct amended *e,
    const struct about *about)
{
        bool replaced = e && e->by;
        struct feed_item item = {.seq = r->rec.seq,
            .id = buf_str(&s->id),
            .fmt = replaced ? e->fmt : r->rec.fmt,
            .m = replaced ? e->m : r->rec.m,
            .about = replaced ? &e->about : about,
            .replaced = replaced};
        return view_hub_add(s->hub, &item);
}

/* As it stands in the format of the page: nothing is repaired. It may become several messages. */
static int put_other(struct storing *s, uint64_t seq)
{
        struct str json;
        size_t count;
        int rc = view_hub_write_one(s->hub, seq, &json, &count);
        for (size_t i = 0; i < count && !rc; i++)
                view_report_id(s->report, buf_str(&s->id));
        return rc ? rc : view_out_elements(s->out, json);
}

/* ---- which formats are there? ---- */

struct looking {
        const struct format *format;
        uint64_t before;
        bool own, other; /* messages of this format, and of others, were seen */
};

static int look(void *ctx, const struct backend_record *r)
{
        struct looking *l = ctx;
        if (r->damaged || str_starts(r->rec.x, "{\"kind\":\"delete") ||
            str_starts(r->rec.x, "{\"kind\":\"meta") || str_starts(r->rec.x, "{\"kind\":\"tomb"))
                return 0;
        if (l->before && r->rec.seq >= l->before && !str_starts(r->rec.x, "{\"kind\":"))
                return 0;
        if (str_is(r->rec.fmt, l->format->name))
                l->own = true;
        else
                l->other = true;
        return l->own && l->other;
}

int view_stored_look(const struct view_source *source, const struct feed_options *opt,
    const struct format *format, bool *own, bool *other, struct steno_error *err)
{
        struct looking l = {.format = format, .before = opt->before};
        int rc = source->read(source->ctx, opt->after, look, &l, err);
        *own = l.own;
        *other = l.other;
        return rc < 0 ? rc : 0;
}

static int put_damage(struct storing *s, uint64_t first, uint64_t last)
{
        buf_clear(&s->head);
        struct jsonw w = jsonw_to(&s->head);
        jsonw_object(&w);
        jsonw_field_u64(&w, "seq", first);
        if (last > first)
                jsonw_field_u64(&w, "last_seq", last);
        jsonw_field_bool(&w, "damaged", true);
        jsonw_object_end(&w);
        view_report_damage(s->report, first, last);
        int rc = buf_check(&s->head, s->err);
        if (rc == 0)
                rc = view_out_next(s->out);
        return rc ? rc : view_out_put(s->out, buf_str(&s->head));
}

/* 1: the page is full. */
static int take(void *ctx, const struct backend_record *r)
{
        struct storing *s = ctx;
        struct about about = {0};
        const struct amended *e = NULL;
        uint64_t seq = r->damaged ? r->first_seq : r->rec.seq;
        bool lost = r->damaged;
        int rc = 0;
        if (s->opt.before && seq >= s->opt.before)
                return 1;
        if (r->damaged && !seq)
                return 0;
        arena_reset(&s->arena);
        buf_clear(&s->id);
        if (!lost) {
                rc = about_read(r->rec.x, &s->arena, &about, s->err);
                json_unescape(r->rec.id, &s->id, NULL);
                if (rc == 0)
                        rc = view_amends_find(&s->amends, buf_str(&s->id), &e, s->err);
        }
        if (rc)
                return rc;
        bool tombstone = str_is(about.kind, "tombstone");
        lost = lost || (tombstone && about.lost);
        if (!lost && ((e && e->deleted) || (about.kind.n && !(tombstone && e && e->by))))
                return 0;
        bool shows = s->out || s->gathering;
        if (shows && s->opt.limit && s->count - s->skip == s->opt.limit) {
                s->report->has_more = true;
                return 1;
        }
        if (s->count++ < s->skip || !shows)
                return 0;
        if (s->gathering)
                return lost ? 0 : gather(s, r, e, &about);
        view_report_seq(s->report, seq);
        s->report->last_seq = lost && r->damaged ? r->last_seq : seq;
        if (lost && s->own) {
                view_report_damage(s->report, seq, s->report->last_seq);
                return 0;
        }
        if (lost)
                return put_damage(s, seq, s->report->last_seq);
        if (s->own && !str_is(e && e->by ? e->fmt : r->rec.fmt, s->own->name))
                return put_other(s, seq);
        if (s->own)
                return put_own(s, r, e, &about);
        view_report_id(s->report, buf_str(&s->id));
        return put(s, r, e, &about);
}

static int walk(struct storing *s)
{
        s->count = 0;
        int rc = s->source->read(s->source->ctx, s->opt.after, take, s, s->err);
        return rc == 1 ? 0 : rc;
}

static int gather_all(struct storing *s)
{
        struct view_report *report = s->hub->report, mute;
        view_report_init(&mute, false);
        s->hub->report = s->report = &mute;
        s->gathering = true;
        int rc = walk(s);
        s->gathering = false;
        s->hub->report = s->report = report;
        view_report_release(&mute);
        return rc ? rc : view_hub_link(s->hub);
}

int view_stored_write(const struct view_source *source, const struct feed_options *opt,
    const struct format *own, struct view_hub *hub, struct view_out *out,
    struct view_report *report, struct steno_error *err)
{
        struct storing s = {
            .source = source, .opt = *opt, .own = own, .hub = hub, .report = report, .err = err};
        arena_init(&s.arena);
        buf_init(&s.id, 0);
        buf_init(&s.head, 0);
        buf_init(&s.meta, 0);
        report->last_seq = opt->after;
        int rc = view_amends_read(&s.amends, source, opt->after, err);
        if (rc == 0 && opt->last) {
                rc = walk(&s);
                s.skip = s.count > opt->last ? s.count - opt->last : 0;
                report->has_more = s.skip > 0;
        }
        if (rc == 0 && hub)
                rc = gather_all(&s);
        s.out = out;
        if (rc == 0)
                rc = walk(&s);
        view_amends_release(&s.amends);
        arena_release(&s.arena);
        buf_release(&s.id);
        buf_release(&s.head);
        buf_release(&s.meta);
        return rc;
}
