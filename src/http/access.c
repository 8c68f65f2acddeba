/*
 * access.c - see access.h.
 */
#include <string.h>
#include <strings.h>

#include "gateway/gateway.h"
#include "http/access.h"
#include "http/answer.h"
#include "http/buckets.h"
#include "http/connections.h"
#include "http/http.h"
#include "http/server_core.h"
#include "http/sign.h"

/* Where a client of the gateway has its key, our token stands. */
static struct str gateway_key(struct request *r)
{
        const char *key = request_header(r, "x-api-key");
        if (!key)
                key = request_header(r, "x-goog-api-key");
        if (!key)
                key = request_query(r, "key");
        return str_of(key);
}

static struct str bearer(struct request *r)
{
        struct str rest;
        if (r->path_token.n)
                return r->path_token;
        if (gateway_upstream(r->path, &rest) && !request_header(r, "Authorization"))
                return gateway_key(r);
        const char *a = request_header(r, "Authorization");
        if (!a || strncasecmp(a, "Bearer ", 7) != 0)
                return (struct str){0};
        a += 7;
        while (*a == ' ')
                a++;
        return str_of(a);
}

/* What a client that has no token, or a wrong one, should do. */
static const char *token_words(struct request *r)
{
        if (r->path_token.n && !r->route)
                return "behind /~TOKEN comes the name of an endpoint: /~TOKEN/openai/v1, "
                       "/~TOKEN/anthropic or /~TOKEN/gemini";
        if (r->path_token.n)
                return "the token in the address is not known; steno serve prints one that is, "
                       "behind #token=";
        if (bearer(r).n)
                return "this token is not known; steno serve and steno token new print one that "
                       "is";
        if (r->route && r->route->scope == SCOPE_GATEWAY)
                return "a token is needed: /~TOKEN before the path, or Authorization: Bearer ...";
        return "a token is needed: Authorization: Bearer ...";
}

/* May this identity use this route? 0, or the status. */
static int check_scope(struct request *r, const char **why)
{
        switch (r->route->scope) {
        case SCOPE_OPEN:
                return 0;
        case SCOPE_SIGNED:
                if (r->who.known || sign_check(r))
                        return 0;
                break;
        case SCOPE_VISITOR:
                if (r->who.known || r->server->public_project)
                        return 0;
                break;
        case SCOPE_SESSION:
                if (r->who.known)
                        return 0;
                break;
        case SCOPE_PATH:
                if (r->server->fixtures)
                        return 0;
                /* fall through */
        case SCOPE_GATEWAY:
        case SCOPE_PROJECT:
                if (r->who.known && !r->who.session[0])
                        return 0;
                if (r->who.known) {
                        *why = "no such route";
                        return 404;
                }
                break;
        }
        *why = token_words(r);
        return 401;
}

/* Is this a client without a token of a whole project? Its requests and answers never use the
 * memory that is reserved for owners. This is called before the handler, which turns clients
 * without a token into visitors. */
static bool is_guest(const struct request *r)
{
        return !r->who.known || r->who.session[0];
}

/* A token that was lent is good for the gateway alone, and one in the path for the routes that
 * clients without headers use. */
static bool token_fits(const struct request *r)
{
        bool gateway = r->route && r->route->scope == SCOPE_GATEWAY;
        bool path = gateway || (r->route && r->route->scope == SCOPE_PATH);
        return (!r->who.lent || gateway) && (!r->path_token.n || path);
}

enum MHD_Result access_check(struct request *r, const char *method, const char *version)
{
        struct server *s = r->server;
        const char *why = NULL;
        char allowed[ROUTE_ALLOW];
        r->checked = true;
        r->method = arena_dup(&r->arena, str_of(method)).p;
        if (r->refused)
                return answer_refuse(r, 414, "uri_too_long", "the address is too long");
        int status = http_check_line(r, method, version, &why);
        if (status)
                return answer_refuse(r, status, "bad_request", why);
        status = http_check_headers(s, r, method, &why);
        if (status)
                return answer_refuse(r, status, "bad_headers", why);
        if (!http_check_room(r))
                return answer_refuse_for_room(r);
        if (http_is_chunked(r))
                connections_owes_chunk(r->connection);
        status = http_check_origin(s, r, &why);
        if (status)
                return answer_turn_away(r, status, "forbidden", why);
        if (!s->fixtures)
                identities_check(s->identities, bearer(r), &r->who);
        r->route = route_find(method, r->path, &r->arena, r->params, allowed);
        if (s->fixtures && r->route && r->route->scope != SCOPE_PATH)
                r->route = NULL;
        if (!token_fits(r)) {
                r->who = (struct identity){0};
                r->route = NULL;
        }
        r->guest = is_guest(r);
        if (r->route)
                r->errors = r->route->errors;
        else if (str_starts(r->path, "/v1/"))
                r->errors = ERRORS_OPENAI;
        else if (str_starts(r->path, "/api/v1/"))
                r->errors = ERRORS_ACONTEXT;
        /* Clients without a token must not learn which routes exist. */
        if (!r->route && !r->who.known &&
            !(str_starts(r->path, "/") && !str_starts(r->path, "/api") &&
                !str_starts(r->path, "/v1")))
                return answer_turn_away(r, 401, "unauthorized", token_words(r));
        if (!r->route && allowed[0]) {
                request_header_out(r, "Allow", allowed);
                return answer_turn_away(
                    r, 405, "method_not_allowed", "this method is not allowed here");
        }
        if (!r->route)
                return answer_turn_away(
                    r, 404, "not_found", r->path_token.n ? token_words(r) : "no such route");
        status = check_scope(r, &why);
        if (status)
                return answer_turn_away(
                    r, status, status == 404 ? "not_found" : "unauthorized", why);
        if (r->who.session[0] && r->route->scope != SCOPE_VISITOR &&
            r->route->scope != SCOPE_OPEN &&
            !buckets_take(s->visitor_reads, r->who.token_id, SERVER_PUBLIC_READS_PER_MINUTE)) {
                request_header_out(r, "Retry-After", "60");
                return answer_turn_away(r, 429, "rate_limit", "too many requests; wait a minute");
        }
        status = http_check_body(r, &why);
        if (status == 413)
                return answer_turn_away(r, status, "too_large", why);
        if (status)
                return answer_turn_away(r, status, "unsupported_media_type", why);
        if (atomic_load(&s->stopping))
                return answer_turn_away(r, 503, "stopping", "the server is stopping");
        connections_owes_body(r->connection,
            r->who.known ? INT64_MAX : http_now_ms() + SERVER_VISITOR_BODY_SECONDS * 1000);
        return MHD_YES;
}

bool access_revoked(const struct request *r)
{
        struct identities *ids = r->server->identities;
        return r->who.known && !r->who.lent && identities_version(ids) != r->who.version &&
               !identities_valid(ids, r->who.token_id);
}
