/*
 * wire_blocks.c - answers of Anthropic's Messages, which are lists of blocks (wire_core.h). The
 * provider's own reader puts them together.
 */
#include "gateway/wire_core.h"
#include "provider/blockstream.h"

/* What of a whole answer belongs to the history. */
static void put_blocks(const struct json *j, struct buf *out)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "assistant");
        for (json_ref k = json_child(j, 0); k != JSON_NONE; k = json_next_key(j, 0, k))
                if (json_is(j, k, "content") || !blockstream_is_of_answer(json_inner(j, k)))
                        jsonw_copy_member(&w, j, k);
        jsonw_object_end(&w);
}

static int note_blocks(struct wire_walk *w, const struct json *j)
{
        struct wire_answer *out = w->out;
        struct buf *whole = w->own;
        json_ref type = json_get(j, 0, "type");
        bool start = json_is(j, type, "message_start");
        json_ref message = start ? json_get(j, 0, "message") : 0;
        if (start || json_is(j, type, "message") || !w->stream) {
                wire_take_string(j, message, "id", &out->id);
                wire_take_string(j, message, "model", &out->model);
                wire_take_word(
                    j, json_get(j, message, "stop_reason"), out->finish, sizeof out->finish);
                wire_check_role(j, json_get(j, message, "role"), "assistant", out);
                w->any = true;
        }
        w->any = w->any || json_is(j, type, "content_block_start");
        if (!w->stream)
                put_blocks(j, whole);
        wire_take_word(j, json_get(j, json_get(j, 0, "delta"), "stop_reason"), out->finish,
            sizeof out->finish);
        return whole->failed;
}

int wire_read_blocks(struct str body, bool stream, struct wire_answer *out)
{
        struct buf whole;
        struct wire_walk w = {
            .each = note_blocks, .out = out, .own = &whole, .last = "message_stop"};
        buf_init(&whole, 0);
        int rc = wire_walk_answer(&w, body, stream);
        if (rc == 0)
                rc = wire_read_as(&provider_anthropic, body, stream, 0, out, NULL);
        if (rc == 0 && !out->answered)
                rc = wire_take_verbatim(out, &whole);
        if (rc == 0 && !w.any)
                wire_refuse_nothing(out, "message");
        buf_release(&whole);
        return rc;
}
