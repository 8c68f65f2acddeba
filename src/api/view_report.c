/* view_report.c - see view_report.h */
#include "api/view_report.h"

#include "base/error.h"
#include "format/report.h"
#include "view/tokens.h"

static void list_init(struct view_list *l)
{
        buf_init(&l->text, 0);
}

/* Called when both have come to rest: a jsonw points to its buffer. */
static struct jsonw *list_writer(struct view_list *l)
{
        if (!l->w.b) {
                l->w = jsonw_to(&l->text);
                jsonw_array(&l->w);
        }
        return &l->w;
}

void view_report_init(struct view_report *r, bool wanted)
{
        *r = (struct view_report){.wanted = wanted};
        list_init(&r->repairs);
        list_init(&r->losses);
        list_init(&r->damage.list);
        list_init(&r->edits);
        list_init(&r->ids);
        buf_init(&r->edit_at, 0);
        list_writer(&r->edits);
}

void view_report_release(struct view_report *r)
{
        buf_release(&r->repairs.text);
        buf_release(&r->losses.text);
        buf_release(&r->damage.list.text);
        buf_release(&r->edits.text);
        buf_release(&r->ids.text);
        buf_release(&r->edit_at);
}

void view_report_restart(struct view_report *r)
{
        struct view_report fresh;
        view_report_init(&fresh, r->wanted);
        fresh.no_ids = r->no_ids;
        struct buf edit_at = r->edit_at;
        r->edit_at = fresh.edit_at;
        view_report_release(r);
        *r = fresh;
        r->edit_at = edit_at;
        r->edits.w.b = NULL; /* it pointed to the buffer of `fresh` */
        buf_clear(&r->edits.text);
        list_writer(&r->edits);
}

/* A string of the hub: the inside of a token. */
static void put_token(struct jsonw *w, struct str string)
{
        jsonw_raw(w, STR("\""));
        buf_put_str(w->b, string);
        buf_putc(w->b, '"');
}

void view_report_repair(void *ctx, const struct repair_note *note)
{
        struct view_report *r = ctx;
        if (!r->wanted)
                return;
        struct jsonw *w = list_writer(&r->repairs);
        jsonw_object(w);
        if (note->call.p) {
                jsonw_key(w, "call");
                put_token(w, note->call);
        }
        jsonw_field_cstr(w, "class", repair_class_name(note->class));
        jsonw_field_u64(w, "seq", note->seq);
        jsonw_field_cstr(w, "text", note->text);
        jsonw_object_end(w);
}

void view_report_repair_left_out(struct view_report *r, const struct repair_note *note)
{
        if (r->repairs_left_out++ < VIEW_REPORT_REPAIRS)
                view_report_repair(r, note);
        else
                r->more_repairs++;
}

void view_report_loss(void *ctx, uint64_t seq, struct str field, const char *why)
{
        struct view_report *r = ctx;
        if (!r->wanted)
                return;
        if (r->loss_count >= REPORT_LOSSES && !report_is_grave(field, why)) {
                r->more_losses++;
                return;
        }
        r->loss_count++;
        struct jsonw *w = list_writer(&r->losses);
        jsonw_object(w);
        jsonw_field_u64(w, "seq", seq);
        jsonw_field_str(w, "field", field);
        jsonw_field_cstr(w, "why", why);
        jsonw_object_end(w);
}

/* One seq is a number, more are {"from","to"}. */
static void end_range(struct view_damage *d)
{
        if (!d->from)
                return;
        if (d->ranges++ < VIEW_REPORT_RANGES) {
                struct jsonw *w = list_writer(&d->list);
                if (d->from == d->to) {
                        jsonw_u64(w, d->from);
                } else {
                        jsonw_object(w);
                        jsonw_field_u64(w, "from", d->from);
                        jsonw_field_u64(w, "to", d->to);
                        jsonw_object_end(w);
                }
        }
        d->from = 0;
}

void view_report_damage(struct view_report *r, uint64_t first, uint64_t last)
{
        struct view_damage *d = &r->damage;
        if (!r->wanted)
                return;
        d->count += last - first + 1;
        if (d->from && first == d->to + 1) {
                d->to = last;
                return;
        }
        end_range(d);
        d->from = first;
        d->to = last;
}

void view_report_id(struct view_report *r, struct str id)
{
        if (r->wanted && !r->no_ids)
                jsonw_str(list_writer(&r->ids), id);
}

void view_report_seq(struct view_report *r, uint64_t seq)
{
        if (!r->first_seq || seq < r->first_seq)
                r->first_seq = seq;
}

static void put_list(struct jsonw *w, const char *key, struct view_list *l)
{
        jsonw_array_end(list_writer(l));
        jsonw_field_raw(w, key, buf_str(&l->text));
        if (l->text.failed)
                w->b->failed = l->text.failed;
}

int view_report_json(struct view_report *r, char **json, struct steno_error *err)
{
        struct buf out;
        buf_init(&out, 0);
        struct jsonw w = jsonw_to(&out);
        jsonw_object(&w);
        put_list(&w, "repairs", &r->repairs);
        if (r->more_repairs)
                jsonw_field_u64(&w, "more_repairs", r->more_repairs);
        put_list(&w, "losses", &r->losses);
        if (r->more_losses)
                jsonw_field_u64(&w, "more_losses", r->more_losses);
        end_range(&r->damage);
        put_list(&w, "damaged", &r->damage.list);
        jsonw_field_u64(&w, "damaged_count", r->damage.count);
        if (r->counted) {
                jsonw_field_u64(&w, "tokens", r->tokens);
                jsonw_field_bool(&w, "exact", tokens_exact());
        }
        put_list(&w, "edits", &r->edits);
        jsonw_field_u64(&w, "first_seq", r->first_seq);
        jsonw_field_u64(&w, "last_seq", r->last_seq);
        jsonw_field_bool(&w, "has_more", r->has_more);
        if (!r->no_ids)
                put_list(&w, "ids", &r->ids);
        if (r->edit_at.n) {
                jsonw_field_str(&w, "edit_at_message_id", buf_str(&r->edit_at));
        }
        jsonw_object_end(&w);
        int rc = buf_check(&out, err);
        char *text = rc ? NULL : buf_take(&out, NULL);
        if (!rc && !text)
                rc = error_nomem(err);
        buf_release(&out);
        if (!rc)
                *json = text;
        return rc;
}
