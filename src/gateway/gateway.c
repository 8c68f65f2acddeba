/*
 * gateway.c - see gateway.h
 */
#include "gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/json.h"
#include "base/wait.h"
#include "gateway/gateway_core.h"

#define ERRAND_THREADS 4
#define ASKED_MS (10 * 60 * 1000)

const char *gateway_upstream(struct str path, struct str *rest)
{
        return upstreams_of_path(path, rest);
}

/* Which upstream serves /v1/responses. */
static int configure_responses(
    struct gateway *g, const struct gateway_options *opt, struct steno_error *err)
{
        struct json j;
        g->responses = upstreams_find(&g->upstreams, "openai");
        if (!opt->responses)
                return 0;
        json_init(&j);
        int rc = json_parse(&j, opt->responses, strlen(opt->responses), NULL, err);
        char *name = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "upstream"));
        json_ref wire = rc ? JSON_NONE : json_get(&j, 0, "wire");
        if (rc == 0 && name)
                g->responses = upstreams_find(&g->upstreams, name);
        if (rc == 0 && (!g->responses || !g->responses->prefix))
                rc = error_set(
                    err, STENO_EINVAL, "responses.upstream: \"%.40s\" is not an upstream", name);
        if (rc == 0 && wire != JSON_NONE && !json_is(&j, wire, "responses") &&
            !json_is(&j, wire, "chat"))
                rc = error_set(
                    err, STENO_EINVAL, "responses.wire must be \"responses\" or \"chat\"");
        g->responses_chat = rc == 0 && json_is(&j, wire, "chat");
        free(name);
        json_release(&j);
        return rc;
}

/* What the upstreams with stubs need. */
static int prepare_stubs(
    struct gateway *g, const struct gateway_options *opt, struct steno_error *err)
{
        bool stubs = false, tools = false;
        for (size_t i = 0; i < UPSTREAMS_COUNT; i++) {
                stubs = stubs || g->upstreams.list[i].stubs;
                tools = tools || g->upstreams.list[i].tools;
        }
        int rc = stubs ? seams_open(opt->store, opt->path, &g->seams, err) : 0;
        return rc == 0 && tools ? errands_new(ERRAND_THREADS, &g->errands, err) : rc;
}

int gateway_new(const struct gateway_options *opt, struct gateway **out, struct steno_error *err)
{
        struct gateway *g = calloc(1, sizeof *g);
        if (!g)
                return error_nomem(err);
        pthread_mutex_init(&g->mutex, NULL);
        wait_init(&g->quiet);
        g->store = opt->store;
        int rc = upstreams_configure(&g->upstreams, opt->upstreams, opt->env, err);
        if (rc == 0)
                rc = configure_responses(g, opt, err);
        if (rc == 0)
                rc = exchanges_open(env_real(), opt->path, &g->exchanges, err);
        if (rc == 0)
                rc = prepare_stubs(g, opt, err);
        if (rc == 0)
                rc = recorder_new(opt->store, g->exchanges, opt->path, &g->recorder, err);
        if (rc == 0)
                rc = recorder_recover(g->recorder, err);
        if (rc) {
                gateway_free(g, NULL, NULL);
                return rc;
        }
        *out = g;
        return 0;
}

const char *gateway_responses(const struct gateway *g)
{
        return g->responses->name;
}

bool gateway_responses_chat(const struct gateway *g)
{
        return g->responses_chat;
}

bool gateway_has_app(const struct gateway *g)
{
        return upstreams_find(&g->upstreams, UPSTREAMS_APP)->url != NULL;
}

int gateway_endpoint(
    struct gateway *g, const char *upstream, struct gateway_endpoint *out, struct steno_error *err)
{
        const struct upstream *up = upstreams_find(&g->upstreams, upstream);
        bool app = up && !up->prefix;
        if (!up || (!up->key && !app))
                return error_set(err, STENO_EINVAL,
                    "no key is configured for %.40s: set \"upstreams\" in the server's "
                    "configuration",
                    upstream);
        *out = (struct gateway_endpoint){up->url, up->key_header, up->key};
        return 0;
}

void gateway_remember(struct gateway *g, const char *key, const char *id)
{
        pthread_mutex_lock(&g->mutex);
        struct asked *a = &g->asked[g->asked_next++ % GATEWAY_ASKED_COUNT];
        snprintf(a->key, sizeof a->key, "%s", key);
        snprintf(a->id, sizeof a->id, "%s", id);
        a->at = time_monotonic_ms();
        pthread_mutex_unlock(&g->mutex);
}

bool gateway_recall(struct gateway *g, const char *key, char id[GATEWAY_ASKED])
{
        bool found = false;
        pthread_mutex_lock(&g->mutex);
        int64_t now = time_monotonic_ms();
        for (size_t i = 1; i <= GATEWAY_ASKED_COUNT && !found; i++) {
                const struct asked *a =
                    &g->asked[(g->asked_next + GATEWAY_ASKED_COUNT - i) % GATEWAY_ASKED_COUNT];
                found = a->id[0] && now - a->at < ASKED_MS && strcmp(a->key, key) == 0;
                if (found)
                        snprintf(id, GATEWAY_ASKED, "%s", a->id);
        }
        pthread_mutex_unlock(&g->mutex);
        return found;
}

void gateway_stop(struct gateway *g)
{
        if (!g)
                return;
        pthread_mutex_lock(&g->mutex);
        struct relay *relay = g->relay;
        g->stopped = true;
        pthread_mutex_unlock(&g->mutex);
        errands_free(g->errands); /* before the relay, whose jobs they may start */
        g->errands = NULL;
        relay_free(relay); /* Readers may still look at it; they find no job there. */
        g->relay = NULL;
}

void gateway_free(struct gateway *g, uint64_t *recorded, uint64_t *failed)
{
        if (!g)
                return;
        gateway_stop(g);
        pthread_mutex_lock(&g->mutex);
        while (g->turns)
                pthread_cond_wait(&g->quiet, &g->mutex);
        pthread_mutex_unlock(&g->mutex);
        recorder_free(g->recorder, recorded, failed);
        exchanges_close(g->exchanges);
        seams_close(g->seams);
        upstreams_release(&g->upstreams);
        pthread_mutex_destroy(&g->mutex);
        pthread_cond_destroy(&g->quiet);
        free(g);
}
