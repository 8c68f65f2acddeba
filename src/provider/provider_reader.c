/* provider_reader.c - see provider_reader.h */
#include "provider/provider_reader.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

void provider_reader_init(struct provider_reader *r, const struct reply_hooks *hooks)
{
        *r = (struct provider_reader){.hooks = *hooks};
        json_init(&r->tape);
}

void provider_reader_release(struct provider_reader *r)
{
        json_release(&r->tape);
}

static bool says_error(const struct json *j)
{
        enum json_type type = json_type(j, json_get(j, 0, "error"));
        return (type != JSON_NOTHING && type != JSON_NULL) ||
               (type == JSON_NOTHING && json_is(j, json_get(j, 0, "object"), "error"));
}

bool provider_reader_parse(struct provider_reader *r, struct str data, int *rc)
{
        struct steno_error why;
        *rc = json_parse(&r->tape, data.p, data.n, NULL, &why);
        if (*rc == STENO_ENOMEM)
                return false;
        if (*rc || json_type(&r->tape, 0) != JSON_OBJECT) {
                if (r->verbatim && !r->whole) {
                        r->skipped++;
                        *rc = 0;
                        return false;
                }
                reply_fault_set(&r->fault, "LLM_BAD_REPLY", true,
                    "the endpoint sent something that is not a JSON object%s%.150s",
                    *rc ? ": " : "", *rc ? why.msg : "");
                *rc = 0;
                return false;
        }
        if (says_error(&r->tape)) {
                struct reply_fault fault = {0};
                *rc = reply_fault_json(&fault, 0, data) ? 0 : STENO_ENOMEM;
                if (!r->fault.code)
                        r->fault = fault;
                return *rc == 0 && r->verbatim;
        }
        return true;
}

bool provider_reader_is_over(const struct provider_reader *r)
{
        return r->done || (r->fault.code && !r->verbatim);
}

void provider_reader_finish(struct provider_reader *r, json_ref word)
{
        struct str s = json_inner(&r->tape, word);
        if (!s.n)
                return;
        size_t most = sizeof r->finish - 1;
        snprintf(r->finish, sizeof r->finish, "%.*s", (int)(s.n < most ? s.n : most), s.p);
        r->finished = true;
}

enum reply_finish provider_reader_finish_of(
    const struct provider_reader *r, const struct provider_finish *list)
{
        if (!r->finish[0])
                return FINISH_NONE;
        for (; list->word; list++)
                if (strcmp(r->finish, list->word) == 0)
                        return list->finish;
        return FINISH_OTHER;
}
