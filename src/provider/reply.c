/*
 * reply.c - replies and the faults of model calls.
 */
#include "provider/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

void reply_init(struct reply *r)
{
        *r = (struct reply){0};
        buf_init(&r->message, MESSAGE_MAX);
        buf_init(&r->text, MESSAGE_MAX);
        buf_init(&r->thinking, MESSAGE_MAX);
        buf_init(&r->usage, 64 * KIB);
}

void reply_release(struct reply *r)
{
        for (size_t i = 0; i < r->count; i++) {
                free(r->calls[i].id);
                free(r->calls[i].name);
                buf_release(&r->calls[i].args);
        }
        free(r->calls);
        if (r->has_whole)
                close(r->whole);
        buf_release(&r->message);
        buf_release(&r->text);
        buf_release(&r->thinking);
        buf_release(&r->usage);
        *r = (struct reply){0};
}

void reply_clear(struct reply *r)
{
        reply_release(r);
        reply_init(r);
}

/* ---- calls ---- */

static bool id_usable(const struct reply *r, const char *id)
{
        size_t n = strlen(id);
        if (n == 0 || n > CALL_ID_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)id[i] < 0x20 || id[i] == 0x7f)
                        return false;
        for (size_t i = 0; i < r->count; i++)
                if (strcmp(r->calls[i].id, id) == 0)
                        return false;
        return true;
}

static enum call_state state_of(struct str args, enum reply_finish finish)
{
        args = str_trim(args);
        if (finish == FINISH_FILTER)
                return CALL_FILTERED;
        if (args.n == 0)
                return finish == FINISH_LENGTH ? CALL_CUT : CALL_OK;
        if (args.p[0] == '{' && json_valid(args.p, args.n, NULL))
                return CALL_OK;
        return finish == FINISH_LENGTH ? CALL_CUT : CALL_INVALID;
}

static struct reply_call *new_call(struct reply *r)
{
        if (!grow_room(r->calls, r->count, r->room))
                return NULL;
        struct reply_call *call = &r->calls[r->count];
        *call = (struct reply_call){0};
        buf_init(&call->args, MESSAGE_MAX);
        return call;
}

const char *reply_add_call(struct reply *r, const struct reply_hooks *hooks, const char *id,
    const char *name, struct str args)
{
        char made[64];
        struct reply_call *call = new_call(r);
        if (!call)
                return NULL;
        if (!id_usable(r, id)) {
                hooks->make_id(hooks->ctx, made);
                id = made;
        }
        call->id = strdup(id);
        call->name = strdup(name);
        buf_put_str(&call->args, args);
        buf_cstr(&call->args);
        call->state = state_of(args, r->finish);
        if (call->id && call->name && !call->args.failed) {
                r->count++;
                return call->id;
        }
        free(call->id);
        free(call->name);
        buf_release(&call->args);
        return NULL;
}

void reply_doubt_last(struct reply *r)
{
        if (r->finish == FINISH_LENGTH && r->count && r->calls[r->count - 1].state == CALL_OK)
                r->calls[r->count - 1].state = CALL_CUT;
}

/* ---- faults ---- */

void reply_fault_set(struct reply_fault *f, const char *code, bool retryable, const char *fmt, ...)
{
        va_list ap;
        f->code = code;
        f->retryable = retryable;
        va_start(ap, fmt);
        vsnprintf(f->message, sizeof(f->message), fmt, ap);
        va_end(ap);
        size_t n = strlen(f->message);
        f->message[text_floor(f->message, n, n)] = '\0';
        n = text_utf8_prefix(f->message, n);
        f->message[n] = '\0';
}

void reply_judge(struct reply *r, const struct reply_fault *told, bool ended, bool any)
{
        r->fault = *told;
        if (r->fault.code)
                return;
        if (!ended && r->finish == FINISH_NONE)
                reply_fault_set(&r->fault, "LLM_NETWORK", true,
                    "the stream ended before the reply was complete");
        else if (!any && r->finish != FINISH_FILTER && r->finish != FINISH_LENGTH)
                reply_fault_set(&r->fault, "LLM_EMPTY", true, "the model's reply was empty");
}

static bool mentions(const struct json *j, json_ref r, const char *word)
{
        struct str s = json_inner(j, r);
        return s.n && memmem(s.p, s.n, word, strlen(word));
}

static bool is_context_fault(const struct json *j, json_ref error, json_ref message)
{
        return mentions(j, json_get(j, error, "code"), "context_length") ||
               mentions(j, message, "maximum context length") ||
               mentions(j, message, "context window") || mentions(j, message, "prompt is too long");
}

/* Sets the fault for a status. `http`: this is the status of the answer, so the message shows it.
 * The status of an error inside a stream is not shown. */
static void by_status(struct reply_fault *f, long status, bool http, const char *words)
{
        bool told = words[0] != '\0';
        const char *sep = told ? ": " : "";
        char in[24] = "";
        if (http)
                snprintf(in, sizeof in, " (HTTP %ld)", status);
        if (status == 401 || status == 403)
                reply_fault_set(
                    f, "LLM_AUTH", false, "the endpoint refused the key%s%s%s", in, sep, words);
        else if (status == 408 || status == 504)
                reply_fault_set(
                    f, "LLM_TIMEOUT", true, "the endpoint timed out%s%s%s", in, sep, words);
        else if (status == 429)
                reply_fault_set(
                    f, "LLM_RATE_LIMIT", true, "too many requests%s%s%s", in, sep, words);
        else if (status >= 500)
                reply_fault_set(f, "LLM_SERVER", true, "the endpoint failed%s%s%s", in, sep, words);
        else if (status)
                reply_fault_set(f, "LLM_ERROR", false, "the endpoint refused the request%s%s%s", in,
                    sep, words);
        else
                reply_fault_set(
                    f, "LLM_ERROR", true, "the endpoint reported an error%s%s", sep, words);
}

static long status_of(const struct json *j, json_ref error)
{
        int64_t code = 0;
        if (json_i64(j, json_get(j, error, "code"), &code) ||
            json_i64(j, json_get(j, error, "status"), &code))
                return code >= 400 && code < 600 ? (long)code : 0;
        json_ref type = json_get(j, error, "type");
        if (mentions(j, type, "overloaded") || mentions(j, type, "server_error"))
                return 503;
        if (mentions(j, type, "rate_limit") ||
            mentions(j, json_get(j, error, "code"), "rate_limit"))
                return 429;
        if (mentions(j, type, "authentication"))
                return 401;
        return 0;
}

bool reply_fault_json(struct reply_fault *f, long status, struct str text)
{
        struct json j;
        struct buf words;
        json_init(&j);
        buf_init(&words, 64 * KIB);
        bool found = false;
        if (json_parse(&j, text.p, text.n, NULL, NULL) != 0)
                goto out;
        json_ref error = json_get(&j, 0, "error");
        if (json_type(&j, error) == JSON_NOTHING && json_is(&j, json_get(&j, 0, "object"), "error"))
                error = 0;
        if (json_type(&j, error) == JSON_NOTHING || json_type(&j, error) == JSON_NULL)
                goto out;
        found = true;
        json_ref message = error;
        bool http = status != 0;
        if (json_type(&j, error) == JSON_OBJECT) {
                message = json_get(&j, error, "message");
                if (!status)
                        status = status_of(&j, error);
        }
        if (!json_string(&j, message, &words, NULL))
                buf_put_str(&words, json_raw(&j, error));
        const char *z = buf_cstr(&words);
        by_status(f, status, http, z ? z : "");
        if (is_context_fault(&j, error, message))
                reply_fault_set(f, "LLM_CONTEXT", false,
                    "the history is too long for the model: %s", z ? z : "");
out:
        buf_release(&words);
        json_release(&j);
        return found;
}

void reply_fault_http(struct reply_fault *f, long status, struct str body)
{
        if (reply_fault_json(f, status, body))
                return;
        char words[201] = "";
        size_t n = body.n < 200 ? body.n : 200;
        n = text_utf8_prefix(body.p, n);
        memcpy(words, body.p ? body.p : "", n);
        words[n] = '\0';
        for (size_t i = 0; i < n; i++)
                if ((unsigned char)words[i] < 0x20)
                        words[i] = ' ';
        by_status(f, status, status != 0, words);
}
