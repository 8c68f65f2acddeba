/*
 * wire_chat.c - answers of chat completions (wire_core.h). The provider's own reader puts the first
 * choice together; a stream is read once more for each further one.
 */
#include "base/limits.h"
#include "gateway/wire_core.h"

static int note_chat(struct wire_walk *w, const struct json *j)
{
        struct wire_answer *out = w->out;
        struct wire_choices *all = w->own;
        json_ref list = json_get(j, 0, "choices");
        json_ref choice = json_at(j, list, 0);
        json_ref message = json_get(j, choice, w->stream ? "delta" : "message");
        wire_take_string(j, 0, "id", &out->id);
        wire_take_string(j, 0, "model", &out->model);
        wire_note_choices(w, j, list);
        for (json_ref c = json_child(j, list); c != JSON_NONE; c = json_next(j, list, c))
                wire_check_role(j,
                    json_get(j, json_get(j, c, w->stream ? "delta" : "message"), "role"),
                    "assistant", out);
        if (!w->stream && json_type(j, message) == JSON_OBJECT)
                wire_put_with_role(j, message, "assistant", &all->message);
        return all->message.failed ? all->message.failed : out->others.failed;
}

static int put_choice(struct str body, int64_t index, struct wire_answer *out)
{
        struct wire_answer one;
        struct buf b;
        char finish[40] = "";
        wire_answer_init(&one);
        buf_init(&b, MESSAGE_MAX);
        int rc = wire_read_as(&provider_openai, body, true, index, &one, finish);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_i64(&w, "index", index);
        if (rc == 0 && one.count)
                jsonw_field_raw(&w, "message", str_span(one.messages.p + 1, one.messages.n - 2));
        if (finish[0])
                jsonw_field_str(&w, "finish_reason", str_of(finish));
        else
                jsonw_field_null(&w, "finish_reason");
        jsonw_object_end(&w);
        wire_add_other(out, buf_str(&b));
        if (rc == 0)
                rc = b.failed ? b.failed : out->others.failed;
        wire_answer_release(&one);
        buf_release(&b);
        return rc;
}

int wire_read_chat(struct str body, bool stream, struct wire_answer *out)
{
        struct wire_choices all = {0};
        struct wire_walk w = {.each = note_chat, .out = out, .own = &all, .last = "[DONE]"};
        buf_init(&all.message, 0);
        int rc = wire_walk_answer(&w, body, stream);
        if (rc == 0)
                rc = wire_read_as(
                    &provider_openai, body, stream, all.count ? all.index[0] : 0, out, out->finish);
        if (rc == 0 && !out->answered)
                rc = wire_take_verbatim(out, &all.message);
        if (rc == 0 && (stream ? !w.any : all.message.n == 0))
                wire_refuse_nothing(out, stream ? "choices" : "message");
        if (all.count > 1 && body.n > WIRE_CHOICES_BYTES / all.count)
                wire_note_odd(out, "the answer has %zu choices", all.count);
        else
                for (size_t i = 1; i < all.count && rc == 0; i++)
                        rc = put_choice(body, all.index[i], out);
        buf_release(&all.message);
        return rc;
}
