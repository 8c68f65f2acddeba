/* report.c - see report.h */
#include "format/report.h"

#include <string.h>

void report_init(struct report *r)
{
        *r = (struct report){0};
        buf_init(&r->repairs, 0);
        buf_init(&r->losses, 0);
}

void report_release(struct report *r)
{
        buf_release(&r->repairs);
        buf_release(&r->losses);
}

bool report_is_grave(struct str field, const char *why)
{
        bool whole = str_is(field, "call") || str_is(field, "result");
        return whole && !strstr(why, "written as") && !strstr(why, "became");
}

void report_loss(void *ctx, uint64_t seq, struct str field, const char *why)
{
        struct report *r = ctx;
        if (r->loss_count >= REPORT_LOSSES && !report_is_grave(field, why)) {
                r->more_losses++;
                return;
        }
        struct jsonw w = {&r->losses, r->loss_count++ > 0};
        jsonw_object(&w);
        jsonw_field_u64(&w, "seq", seq);
        jsonw_field_str(&w, "field", field);
        jsonw_field_cstr(&w, "why", why);
        jsonw_object_end(&w);
}

void report_repair(void *ctx, const struct repair_note *note)
{
        struct report *r = ctx;
        struct jsonw w = {&r->repairs, r->repair_count++ > 0};
        jsonw_object(&w);
        jsonw_key(&w, "call");
        if (note->call.p) {
                jsonw_raw(&w, STR("\""));
                buf_put_str(w.b, note->call);
                buf_putc(w.b, '"');
        } else {
                jsonw_null(&w);
        }
        jsonw_field_cstr(&w, "class", repair_class_name(note->class));
        jsonw_field_u64(&w, "seq", note->seq);
        jsonw_field_cstr(&w, "text", note->text);
        jsonw_object_end(&w);
}

static void put_list(struct jsonw *w, const char *key, const struct buf *list)
{
        jsonw_key(w, key);
        jsonw_array(w);
        buf_put_str(w->b, buf_str(list));
        if (list->failed)
                w->b->failed = list->failed;
        jsonw_array_end(w);
}

void report_write(const struct report *r, struct jsonw *w)
{
        put_list(w, "repairs", &r->repairs);
        put_list(w, "losses", &r->losses);
        if (r->more_losses)
                jsonw_field_u64(w, "more_losses", r->more_losses);
}
