/*
 * provider_request.c - see provider_request.h
 */
#include "provider/provider_request.h"

int provider_put_request(const struct provider_request *r, provider_put_body_fn put_body,
    struct buf *out, struct steno_error *err)
{
        struct json history, params;
        struct str given = r->params.n ? r->params : STR("{}");
        json_init(&history);
        json_init(&params);
        int rc = json_parse(&history, r->history.p, r->history.n, NULL, err);
        if (rc == 0)
                rc = json_parse(&params, given.p, given.n, NULL, err);
        if (rc == 0) {
                struct jsonw w = jsonw_to(out);
                jsonw_object(&w);
                jsonw_field_cstr(&w, "model", r->model ? r->model : "");
                put_body(&w, r, &history, &params);
                jsonw_object_end(&w);
        }
        json_release(&params);
        json_release(&history);
        return rc;
}

void provider_put_params(struct jsonw *w, const struct json *params, const char *but)
{
        for (json_ref k = json_child(params, 0); k != JSON_NONE; k = json_next_key(params, 0, k))
                if (!provider_param_taken(params, k) && !(but && json_is(params, k, but)))
                        jsonw_copy_member(w, params, k);
}

void provider_put_schema(struct jsonw *w, const char *key, const struct provider_tool *t)
{
        jsonw_field_raw(w, key, t->schema.n ? t->schema : STR("{\"type\":\"object\"}"));
}

const char *provider_go_on_words(const struct provider_request *r, const struct json *history)
{
        json_ref last = JSON_NONE;
        for (json_ref m = json_child(history, 0); m != JSON_NONE; m = json_next(history, 0, m))
                last = m;
        if (!r->go_on || !json_is(history, json_get(history, last, "role"), "assistant"))
                return NULL;
        return r->go_on_words ? r->go_on_words : PROVIDER_GO_ON;
}
