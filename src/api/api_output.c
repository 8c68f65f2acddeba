/*
 * api_output.c - steno_output_*: a tool's output as it comes, and the message it becomes.
 */
#include "api/carry.h"
#include "api/spill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "model/members.h"

#define SEQ_ROOM 28 /* {"seq": and the longest number */

struct steno_output {
        struct steno_conv *conv;
        struct spill *spill;
        struct policy policy;
        char *tool;
        char *call;
        char *server; /* NULL: none */
        char message_id[40];
        uint32_t flags;
        bool terminal;
        bool closed; /* the message was made: nothing more can be written */
        struct artifact_info info;
};

static int copy_names(
    struct steno_output *o, const struct steno_output_options *opt, struct steno_error *err)
{
        const char *tool = OPTION(opt, struct steno_output_options, tool, NULL);
        const char *call = OPTION(opt, struct steno_output_options, call_id, NULL);
        const char *server = OPTION(opt, struct steno_output_options, server, NULL);
        if (!tool || !*tool || !call || !*call)
                return error_set(err, STENO_EINVAL, "an output needs its tool's name and call id");
        if (strlen(call) > CALL_ID_MAX)
                return error_set(err, STENO_EINVAL, "a call id has at most %d bytes", CALL_ID_MAX);
        o->tool = strdup(tool);
        o->call = strdup(call);
        o->server = server ? strdup(server) : NULL;
        return o->tool && o->call && (o->server || !server) ? 0 : error_nomem(err);
}

int steno_output_begin(struct steno_conv *conv, const struct steno_output_options *opt,
    struct steno_output **out, struct steno_error *err)
{
        int rc = optstruct_check(opt, sizeof *opt, err);
        if (rc)
                return rc;
        struct steno_output *o = calloc(1, sizeof *o);
        if (!o)
                return error_nomem(err);
        o->conv = conv;
        steno_conv_keep(conv);
        o->flags = OPTION(opt, struct steno_output_options, flags, 0);
        o->terminal = OPTION(opt, struct steno_output_options, terminal, false);
        id_make(conv->store->env, "msg_", o->message_id);
        rc = copy_names(o, opt, err);
        if (rc == 0 && o->flags & ~(uint32_t)STENO_RECORD)
                rc = error_set(err, STENO_EINVAL, "output has no flag 0x%x", o->flags);
        if (rc == 0)
                rc = carry_policy(conv->store,
                    OPTION(opt, struct steno_output_options, profile, NULL),
                    OPTION(opt, struct steno_output_options, max_inline_chars, 0),
                    OPTION(opt, struct steno_output_options, max_inline_bytes, 0), &o->policy, err);
        if (rc == 0) {
                struct spill_options so = {.policy = o->policy,
                    .tool = str_of(o->tool),
                    .server = str_of(o->server),
                    .call = str_of(o->call),
                    .message_id = str_of(o->message_id),
                    .terminal = o->terminal,
                    .context_tools = OPTION(opt, struct steno_output_options, context_tools, false),
                    .on_ref = OPTION(opt, struct steno_output_options, on_ref, NULL),
                    .on_ref_ctx = OPTION(opt, struct steno_output_options, on_ref_ctx, NULL)};
                rc = spill_new(conv, &so, &o->spill, err);
        }
        if (rc) {
                steno_output_free(o);
                return rc;
        }
        *out = o;
        return 0;
}

int steno_output_write(struct steno_output *o, const void *p, size_t n, struct steno_error *err)
{
        if (o->closed)
                return error_set(err, STENO_EINVAL, "the output was finished already");
        return n ? spill_write(o->spill, p, n, err) : 0;
}

const char *steno_output_ref(const struct steno_output *o)
{
        return spill_ref(o->spill);
}

void steno_output_free(struct steno_output *o)
{
        if (!o)
                return;
        spill_free(o->spill);
        steno_conv_close(o->conv);
        free(o->tool);
        free(o->call);
        free(o->server);
        free(o);
}

/* Members that the output itself decides; the caller's fields cannot change them. */
static bool is_fixed(const struct json *j, json_ref key)
{
        return members_has(members_find(j, key), MEMBER_BY_OUTPUT);
}

static void put_text(struct jsonw *w, const char *key, const char *text)
{
        if (!text)
                return;
        jsonw_field_cstr(w, key, text);
}

static void put_message(struct steno_output *o, struct str content, bool materialized,
    const struct json *fields, struct buf *out)
{
        char at[TIME_TEXT];
        struct jsonw w = jsonw_to(out);
        time_format(o->conv->store->env->now(o->conv->store->env), at);
        jsonw_object(&w);
        put_text(&w, "id", o->message_id);
        put_text(&w, "role", "tool");
        put_text(&w, "tool_call_id", o->call);
        jsonw_field_str(&w, "content", content);
        put_text(&w, "toolName", o->tool);
        put_text(&w, "serverName", o->server);
        put_text(&w, "createdAt", at);
        for (json_ref k = json_child(fields, 0); k != JSON_NONE; k = json_next_key(fields, 0, k)) {
                if (is_fixed(fields, k))
                        continue;
                jsonw_copy_member(&w, fields, k);
        }
        if (materialized) {
                jsonw_key(&w, "ref");
                spill_put_ref(&w, &o->info);
                if (policy_names_path(&o->policy)) {
                        struct buf path;
                        buf_init(&path, 4 * KIB);
                        spill_put_path(&path, steno_conv_id(o->conv), str_of(o->message_id), 1);
                        jsonw_field_str(&w, "fullOutputPath", buf_str(&path));
                        buf_release(&path);
                }
        }
        jsonw_object_end(&w);
}

int steno_output_message(struct steno_output *o, const char *fields_json, char **message, size_t *n,
    struct steno_error *err)
{
        struct json fields;
        struct buf content, out;
        struct spill_exit exit = {0};
        bool materialized = false;
        const char *text = fields_json ? fields_json : "{}";
        if (o->closed)
                return error_set(err, STENO_EINVAL, "the output was finished already");
        json_init(&fields);
        buf_init(&content, 0);
        buf_init(&out, 0);
        int rc = json_parse(&fields, text, strlen(text), NULL, err);
        if (rc == 0 && json_type(&fields, 0) != JSON_OBJECT)
                rc = error_set(err, STENO_EINVAL, "the fields of an output must be an object");
        if (rc == 0) {
                exit.has_code = json_i64(&fields, json_get(&fields, 0, "exitCode"), &exit.code);
                exit.unfinished = json_bool(&fields, json_get(&fields, 0, "unfinished"), false);
                rc = spill_finish(o->spill, &exit, &content, &materialized, &o->info, err);
        }
        if (rc == 0) {
                put_message(o, buf_str(&content), materialized, &fields, &out);
                rc = buf_check(&out, err);
        }
        if (rc == 0) {
                char *json = buf_take(&out, n);
                if (json) {
                        *message = json;
                        o->closed = true;
                } else {
                        rc = error_nomem(err);
                }
        }
        if (rc && materialized)
                backend_artifact_undo(o->conv->backend, o->info.id);
        json_release(&fields);
        buf_release(&content);
        buf_release(&out);
        return rc;
}

/* {"seq","id","content","ref"}; the seq is not known yet and gets room at the front. */
static int put_result(const char *message, size_t n, struct buf *out, struct steno_error *err)
{
        struct json j;
        json_init(&j);
        int rc = json_parse(&j, message, n, NULL, err);
        if (rc == 0) {
                json_ref ref = json_get(&j, 0, "ref");
                buf_printf(out, "%*s", SEQ_ROOM, "");
                struct jsonw w = jsonw_behind(out);
                jsonw_field_copy(&w, "id", &j, json_get(&j, 0, "id"));
                jsonw_field_copy(&w, "content", &j, json_get(&j, 0, "content"));
                jsonw_key(&w, "ref");
                if (ref == JSON_NONE)
                        jsonw_null(&w);
                else
                        jsonw_raw(&w, json_raw(&j, ref));
                jsonw_object_end(&w);
                rc = buf_cstr(out) ? 0 : error_nomem(err);
        }
        json_release(&j);
        return rc;
}

/* Needs no memory, because a failure here would report a stored message as refused. */
static char *finish_result(struct buf *out, uint64_t seq)
{
        char head[SEQ_ROOM + 1];
        int n = snprintf(head, sizeof head, "{\"seq\":%llu", (unsigned long long)seq);
        buf_drop_front(out, SEQ_ROOM - (size_t)n);
        memcpy(out->p, head, (size_t)n);
        return buf_take(out, NULL);
}

int steno_output_finish(
    struct steno_output *o, const char *fields_json, char **json, struct steno_error *err)
{
        char *message = NULL;
        size_t n = 0;
        struct buf result;
        struct steno_receipt *receipt = NULL;
        struct steno_append_options opt = {
            .size = sizeof opt, .flags = (o->flags & STENO_RECORD) | STENO_DECIDED};
        int rc = steno_output_message(o, fields_json, &message, &n, err);
        if (rc)
                return rc;
        buf_init(&result, 0);
        rc = put_result(message, n, &result, err);
        if (rc == 0)
                rc = steno_append(o->conv, message, n, &opt, &receipt, err);
        if (rc == 0)
                *json = finish_result(&result, steno_receipt_first_seq(receipt));
        else if (o->info.id[0] && rc != STENO_EINDOUBT)
                backend_artifact_undo(o->conv->backend, o->info.id);
        steno_receipt_free(receipt);
        buf_release(&result);
        free(message);
        return rc;
}
