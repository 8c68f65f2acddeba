/*
 * wire_parts.c - answers of Gemini, which are lists of parts (wire_core.h). A stream sends whole
 * parts, of which only texts are cut, so the parts are collected.
 */
#include "base/limits.h"
#include "gateway/wire_core.h"

/* A candidate as it is put together. Two texts of one kind that follow each other are one: a stream
 * cuts them anywhere. */
struct parts {
        struct wire_choices all;
        int64_t wanted; /* which candidate, by its index; of a body the first */
        struct buf list;
        struct buf text; /* the text that is being collected, raw inside of its quotes */
        bool thought;
        bool any;
};

static void flush_text(struct parts *p)
{
        if (!p->any)
                return;
        buf_puts(&p->list, p->list.n ? "," : "");
        buf_puts(&p->list, p->thought ? "{\"thought\":true,\"text\":\"" : "{\"text\":\"");
        buf_put_str(&p->list, buf_str(&p->text));
        buf_puts(&p->list, "\"}");
        buf_clear(&p->text);
        p->any = false;
}

static void add_part(struct parts *p, const struct json *j, json_ref part, struct wire_answer *out)
{
        json_ref text = json_get(j, part, "text");
        json_ref thought = json_get(j, part, "thought");
        uint32_t known = (text != JSON_NONE) + (thought != JSON_NONE);
        if (json_type(j, text) == JSON_STRING && json_count(j, part) == known) {
                if (json_inner(j, text).n == 0)
                        return; /* the last piece of a stream; no endpoint takes it back */
                bool is_thought = json_bool(j, thought, false);
                if (p->any && p->thought != is_thought)
                        flush_text(p);
                p->thought = is_thought;
                p->any = true;
                buf_put_str(&p->text, json_inner(j, text));
        } else {
                flush_text(p);
                buf_puts(&p->list, p->list.n ? "," : "");
                buf_put_str(&p->list, json_raw(j, part));
        }
        if (!json_bool(j, thought, false))
                json_string(j, text, &out->text, NULL);
}

static void take_candidate(const struct json *j, json_ref candidate, struct wire_walk *w)
{
        struct wire_answer *out = w->out;
        struct parts *p = w->own;
        json_ref content = json_get(j, candidate, "content");
        json_ref parts = json_get(j, content, "parts");
        wire_check_role(j, json_get(j, content, "role"), "model", out);
        for (json_ref c = json_child(j, parts); c != JSON_NONE; c = json_next(j, parts, c))
                add_part(p, j, c, out);
        wire_take_word(j, json_get(j, candidate, "finishReason"), out->finish, sizeof out->finish);
        if (!w->stream && json_count(j, parts))
                wire_put_with_role(j, content, "model", &p->all.message);
}

static int take_candidates(const struct json *j, json_ref root, struct wire_walk *w)
{
        struct wire_answer *out = w->out;
        struct parts *p = w->own;
        json_ref list = json_get(j, root, "candidates");
        bool first = true;
        wire_note_choices(w, j, list);
        for (json_ref c = json_child(j, list); c != JSON_NONE; c = json_next(j, list, c)) {
                int64_t index = 0;
                json_i64(j, json_get(j, c, "index"), &index);
                if (w->stream ? index == p->wanted : first)
                        take_candidate(j, c, w);
                first = false;
        }
        wire_take_usage(j, json_get(j, root, "usageMetadata"), out);
        wire_take_string(j, root, "modelVersion", &out->model);
        wire_take_string(j, root, "responseId", &out->id);
        wire_take_problem(j, json_get(j, root, "error"), out);
        json_ref blocked = json_get(j, json_get(j, root, "promptFeedback"), "blockReason");
        if (json_count(j, list) == 0 && json_inner(j, blocked).n) {
                struct str why = json_inner(j, blocked);
                buf_clear(&out->problem);
                buf_printf(&out->problem, "the endpoint refused the prompt: %.*s",
                    (int)(why.n < 200 ? why.n : 200), why.p);
        }
        return p->all.message.failed ? p->all.message.failed : out->others.failed;
}

static int note_candidates(struct wire_walk *w, const struct json *j)
{
        int rc = 0;
        if (json_type(j, 0) == JSON_OBJECT)
                return take_candidates(j, 0, w);
        w->stream = true; /* without alt=sse a stream is one array */
        for (json_ref e = json_child(j, 0); e != JSON_NONE && rc == 0; e = json_next(j, 0, e))
                rc = take_candidates(j, e, w);
        return rc;
}

/* One candidate: its message, and how it ended. */
static int read_candidate(
    struct str body, bool stream, struct parts *parts, struct wire_answer *out)
{
        struct wire_walk w = {.each = note_candidates, .out = out, .own = parts};
        int rc = wire_walk_answer(&w, body, stream);
        flush_text(parts);
        out->complete = out->finish[0] != '\0';
        if (!w.stream)
                rc = rc ? rc : parts->all.message.failed;
        else
                out->ended = !stream; /* no event of a stream says that it is the last */
        if (!w.stream && parts->all.message.n && !out->answered) {
                out->count = 1;
                return rc ? rc : wire_take_verbatim(out, &parts->all.message);
        }
        if (parts->list.n) {
                buf_puts(&out->messages, "[{\"role\":\"model\",\"parts\":[");
                buf_put_str(&out->messages, buf_str(&parts->list));
                buf_puts(&out->messages, "]}]");
                out->count = 1;
        }
        if (rc == 0)
                rc = parts->list.failed ? parts->list.failed : out->messages.failed;
        return rc;
}

static void parts_init(struct parts *p, int64_t wanted)
{
        *p = (struct parts){.wanted = wanted};
        buf_init(&p->all.message, 0);
        buf_init(&p->list, 0);
        buf_init(&p->text, MESSAGE_MAX);
}

static void parts_release(struct parts *p)
{
        buf_release(&p->all.message);
        buf_release(&p->list);
        buf_release(&p->text);
}

static int put_candidate(struct str body, bool stream, int64_t index, struct wire_answer *out)
{
        struct wire_answer one;
        struct parts parts;
        struct buf b;
        wire_answer_init(&one);
        parts_init(&parts, index);
        buf_init(&b, MESSAGE_MAX);
        int rc = read_candidate(body, stream, &parts, &one);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        if (rc == 0 && one.count)
                jsonw_field_raw(&w, "content", str_span(one.messages.p + 1, one.messages.n - 2));
        if (one.finish[0])
                jsonw_field_str(&w, "finishReason", str_of(one.finish));
        jsonw_field_i64(&w, "index", index);
        jsonw_object_end(&w);
        wire_add_other(out, buf_str(&b));
        if (rc == 0)
                rc = b.failed ? b.failed : out->others.failed;
        buf_release(&b);
        parts_release(&parts);
        wire_answer_release(&one);
        return rc;
}

int wire_read_parts(struct str body, bool stream, struct wire_answer *out)
{
        struct parts parts;
        parts_init(&parts, 0);
        int rc = read_candidate(body, stream, &parts, out);
        struct wire_choices *all = &parts.all;
        bool many = all->count > 1 && body.n > WIRE_CHOICES_BYTES / all->count;
        if (many)
                wire_note_odd(out, "the answer has %zu candidates", all->count);
        for (size_t i = 0; i < all->count && rc == 0 && !many; i++)
                if (all->index[i] != 0)
                        rc = put_candidate(body, stream, all->index[i], out);
        if (!stream && !out->complete && out->problem.n == 0 && out->odd.n == 0)
                buf_puts(&out->problem, "the endpoint's answer has no candidate that ended");
        parts_release(&parts);
        return rc;
}
