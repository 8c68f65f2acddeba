/*
 * own_misc.c - figures, health, the list of routes.
 */
#include "routes/handlers.h"

#include "http/server_core.h"

void own_stats(struct request *r)
{
        struct steno_error err = {0};
        char *json = NULL;
        int rc = steno_stats(r->store, &json, &err);
        request_reply_made(r, rc, json, &err);
}

/* Figures of the store that Prometheus should see as well. */
static void put_store_figures(struct request *r)
{
        static const struct {
                const char *path[2];
                const char *name;
                const char *help;
        } FIGURES[] = {
            {{"conversations", NULL}, "steno_conversations", "Conversations in the store."},
            {{"messages", NULL}, "steno_messages", "Messages in the store."},
            {{"bytes", NULL}, "steno_bytes", "Bytes of all logs and outputs."},
            {{"outputs", "materializations"}, "steno_materializations_total",
                "Tool outputs that became files."},
            {{"outputs", "bytesSaved"}, "steno_bytes_saved_total", "Bytes kept out of contexts."},
            {{"outputs", "charsSaved"}, "steno_chars_saved_total",
                "Characters kept out of contexts."},
        };
        struct json j;
        char *json = NULL;
        json_init(&j);
        if (steno_stats(r->store, &json, NULL) == 0 &&
            json_parse(&j, json, strlen(json), NULL, NULL) == 0) {
                for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++) {
                        json_ref v = json_get(&j, 0, FIGURES[i].path[0]);
                        if (FIGURES[i].path[1])
                                v = json_get(&j, v, FIGURES[i].path[1]);
                        uint64_t n = 0;
                        json_u64(&j, v, &n);
                        buf_printf(&r->reply, "# HELP %s %s\n# TYPE %s gauge\n%s %llu\n",
                            FIGURES[i].name, FIGURES[i].help, FIGURES[i].name, FIGURES[i].name,
                            (unsigned long long)n);
                }
        }
        json_release(&j);
        steno_free(json);
}

void own_metrics(struct request *r)
{
        metrics_put(r->server, &r->reply);
        put_store_figures(r);
        r->status = 200;
        r->content_type = "text/plain; version=0.0.4";
}

void own_health(struct request *r)
{
        buf_printf(&r->reply, "{\"status\":\"ok\",\"version\":\"%s\"}", steno_version());
        request_reply_json(r, 200);
}

void own_docs(struct request *r)
{
        route_put_table(&r->reply);
        request_reply_json(r, 200);
}
