/*
 * upstream_pass.c - /openai/v1/..., /anthropic/..., /gemini/...: requests to a model that are
 * passed on and recorded (gateway/gateway.h).
 */
#include <strings.h>

#include "gateway/gateway.h"
#include "http/passing.h"
#include "http/server_core.h"
#include "routes/handlers.h"

void upstream_pass(struct request *r)
{
        struct str rest;
        const char *upstream = gateway_upstream(r->path, &rest);
        const char *upgrade = request_header(r, "Upgrade");
        if (!upstream) {
                request_error(r, 404, "not_found", "no such route");
        } else if (!r->server->gateway) {
                request_error(r, 503, "no_gateway", "this server has no gateway");
        } else if (upgrade && strcasecmp(upgrade, "websocket") == 0) {
                r->status = 426; /* clients that tried it use plain HTTP then */
        } else {
                passing_start(r, upstream, rest);
                return;
        }
        http_finish(r);
}
