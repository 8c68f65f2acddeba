/*
 * upstream_pass.c - /openai/v1/..., /anthropic/..., /gemini/...: requests to a model that are
 * passed on and recorded (gateway/gateway.h).
 */
#include <strings.h>

#include "base/percent.h"
#include "gateway/gateway.h"
#include "http/passing.h"
#include "http/server_core.h"
#include "routes/handlers.h"

/* A path that leads out of the upstream's own would reach something else with its key. */
static bool has_dots(struct request *r)
{
        struct str path;
        if (!percent_decode(&r->arena, r->path, false, &path))
                return true;
        for (size_t i = 0; i < path.n; i++) {
                if (path.p[i] != '/' && path.p[i] != '\\')
                        continue;
                size_t dots = 0;
                while (i + 1 + dots < path.n && path.p[i + 1 + dots] == '.')
                        dots++;
                bool end = i + 1 + dots == path.n || path.p[i + 1 + dots] == '/' ||
                           path.p[i + 1 + dots] == '\\';
                if ((dots == 1 || dots == 2) && end)
                        return true;
        }
        return false;
}

void upstream_pass(struct request *r)
{
        struct str rest;
        const char *upstream = gateway_upstream(r->path, &rest);
        const char *upgrade = request_header(r, "Upgrade");
        if (strcmp(r->method, "TRACE") == 0 || strcmp(r->method, "CONNECT") == 0) {
                request_error(r, 405, "method_not_allowed", "not with this method");
        } else if (has_dots(r)) {
                request_error(r, 400, "bad_path", "a path must not have . or .. in it");
        } else if (!upstream) {
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
