/* api_check_history.c - steno_check_history of steno.h, over the rules in format/accept.h. */
#include "steno.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "format/accept.h"

int steno_check_history(
    const char *provider, const char *json, size_t n, char **violations, struct steno_error *err)
{
        struct json j;
        struct buf out;
        json_init(&j);
        buf_init(&out, 0);
        int rc = json_parse(&j, json, n, NULL, err);
        if (rc == 0)
                rc = accept_history(provider, &j, &out, err);
        if (rc == 0) {
                char *text = buf_take(&out, NULL);
                if (text)
                        *violations = text;
                else
                        rc = error_nomem(err);
        }
        buf_release(&out);
        json_release(&j);
        return rc;
}
