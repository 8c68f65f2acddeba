/*
 * veil_parts.c - Gemini's generateContent under the veil (veil.h). A stream is made of whole
 * answers with a few parts each; without alt=sse it is an array of them.
 */
#include "gateway/owncalls.h"
#include "gateway/veil_core.h"

struct filtered {
        struct buf parts; /* with commas between */
        bool touched;
};

/* The parts of an answer that are the app's. */
static void filter_parts(struct veil *v, const struct json *j, json_ref answer, struct filtered *f)
{
        json_ref candidate = json_child(j, json_get(j, answer, "candidates"));
        json_ref parts = json_get(j, json_get(j, candidate, "content"), "parts");
        for (json_ref p = json_child(j, parts); p != JSON_NONE; p = json_next(j, parts, p)) {
                json_ref call = json_get(j, p, "functionCall");
                bool is_call = json_type(j, call) == JSON_OBJECT;
                bool own = is_call && owncalls_is_name(j, json_get(j, call, "name"));
                v->hidden += own;
                v->any_hidden = v->any_hidden || own;
                v->calls += is_call && !own;
                f->touched = f->touched || own;
                if (own)
                        continue;
                if (f->parts.n)
                        buf_putc(&f->parts, ',');
                buf_put_str(&f->parts, json_raw(j, p));
        }
        json_ref reason = json_get(j, candidate, "finishReason");
        if (json_type(j, reason) == JSON_STRING)
                veil_ended(v, json_is(j, reason, "STOP"));
        veil_keep_first(v, j, answer);
        veil_keep_usage(v, j, json_get(j, answer, "usageMetadata"));
}

/* The answer with these parts. `on`: the turn goes on, so it has no end. */
static void put_answer(struct veil *v, const struct json *j, json_ref answer, struct str parts,
    bool on, struct buf *out)
{
        json_ref candidate = json_child(j, json_get(j, answer, "candidates"));
        json_ref content = json_get(j, candidate, "content");
        struct buf list, inner, outer, usage;
        struct veil_swap swaps[VEIL_FIRST + 2];
        buf_init(&list, 0);
        buf_init(&inner, 0);
        buf_init(&outer, 0);
        buf_init(&usage, 0);
        buf_putc(&list, '[');
        buf_put_str(&list, parts);
        buf_putc(&list, ']');
        struct veil_swap own = {"parts", buf_str(&list)};
        veil_put_object(&inner, j, content, &own, 1);
        struct veil_swap both[] = {{"content", buf_str(&inner)}, {"finishReason", {0}}};
        buf_putc(&outer, '[');
        veil_put_object(&outer, j, candidate, both, on ? 2 : 1);
        if (content == JSON_NONE && parts.n) { /* the last of several may have none */
                outer.n--;
                buf_puts(&outer, json_count(j, candidate) > on ? "," : "");
                buf_puts(&outer, "\"content\":{\"role\":\"model\",\"parts\":");
                buf_put_str(&outer, buf_str(&list));
                buf_puts(&outer, "}}");
        }
        buf_putc(&outer, ']');
        size_t n = veil_first(v, swaps);
        if (candidate != JSON_NONE)
                swaps[n++] = (struct veil_swap){"candidates", buf_str(&outer)};
        if (v->usage.n)
                swaps[n++] = (struct veil_swap){"usageMetadata", veil_usage(v, &usage)};
        veil_put_object(out, j, answer, swaps, n);
        buf_release(&usage);
        buf_release(&outer);
        buf_release(&inner);
        buf_release(&list);
}

static void parts_event(struct veil *v, struct str name, struct str data, bool is_json)
{
        struct filtered f = {0};
        struct buf out;
        if (!is_json) {
                veil_emit(v, name, data);
                return;
        }
        buf_init(&f.parts, 0);
        buf_init(&out, 0);
        filter_parts(v, &v->j, 0, &f);
        bool on = veil_goes_on(v);
        if (!v->any_hidden) {
                veil_emit(v, name, data);
        } else if (f.parts.n || (v->ended && !on)) {
                put_answer(v, &v->j, 0, buf_str(&f.parts), on, &out);
                bool ended = v->ended;
                v->ended = ended && !on; /* words of a round that goes on pass */
                veil_emit(v, name, buf_str(&out));
                v->ended = ended;
        }
        buf_release(&out);
        buf_release(&f.parts);
}

/* ---- a whole answer ---- */

static void look_at_body(struct veil *v)
{
        const struct json *j = &v->j;
        bool list = json_type(j, 0) == JSON_ARRAY;
        struct filtered f = {0};
        buf_init(&f.parts, 0);
        if (!list)
                filter_parts(v, j, 0, &f);
        for (json_ref e = list ? json_child(j, 0) : JSON_NONE; e != JSON_NONE;
             e = json_next(j, 0, e))
                filter_parts(v, j, e, &f);
        if (f.parts.n)
                veil_see(v, buf_str(&f.parts));
        buf_release(&f.parts);
}

/* All that the app sees in the last answer of the last round. */
static void put_body(struct veil *v, struct buf *out)
{
        const struct json *j = &v->j;
        json_ref last = 0;
        if (json_type(j, 0) != JSON_ARRAY) {
                put_answer(v, j, 0, buf_str(&v->seen), false, out);
                return;
        }
        for (json_ref e = json_child(j, 0); e != JSON_NONE; e = json_next(j, 0, e))
                last = e;
        buf_putc(out, '[');
        put_answer(v, j, last, buf_str(&v->seen), false, out);
        buf_putc(out, ']');
}

const struct veil_spelling veil_parts = {
    "gemini", {"responseId", "modelVersion", NULL}, parts_event, look_at_body, put_body};
