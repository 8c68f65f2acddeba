/*
 * upstreams.c - see upstreams.h
 */
#include "gateway/upstreams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_keys.h"

static const struct {
        const char *name;
        const char *prefix;
        const char *url; /* unless another one is configured */
        const char *key_header;
} known[UPSTREAMS_COUNT] = {
    {"openai", "/openai/v1", "https://api.openai.com/v1", "Authorization: Bearer "},
    {"anthropic", "/anthropic", "https://api.anthropic.com", "x-api-key: "},
    {"gemini", "/gemini", "https://generativelanguage.googleapis.com", "x-goog-api-key: "},
    {UPSTREAMS_APP, NULL, NULL, "Authorization: Bearer "},
};

const char *upstreams_of_path(struct str path, struct str *rest)
{
        for (size_t i = 0; i < UPSTREAMS_COUNT; i++) {
                size_t n = known[i].prefix ? strlen(known[i].prefix) : 0;
                if (n && path.n > n && str_starts(path, known[i].prefix) && path.p[n] == '/') {
                        *rest = str_span(path.p + n, path.n - n);
                        return known[i].name;
                }
        }
        return NULL;
}

/* UPSTREAMS_COUNT: there is none of that name. */
static size_t index_of(const char *name)
{
        size_t i = 0;
        while (i < UPSTREAMS_COUNT && strcmp(known[i].name, name) != 0)
                i++;
        return i;
}

const struct upstream *upstreams_find(const struct upstreams *u, const char *name)
{
        size_t i = index_of(name);
        return i < UPSTREAMS_COUNT ? &u->list[i] : NULL;
}

static int set_key(
    struct upstream *up, const char *key, const char *const *env, struct steno_error *err)
{
        const char *value = key;
        if (strncmp(key, "env:", 4) == 0) {
                value = env_get(env, key + 4);
                if (!value)
                        return error_set(err, STENO_EINVAL,
                            "upstreams.%s.key: the variable %.60s is not set", up->name, key + 4);
        }
        if (strpbrk(value, "\r\n"))
                return error_set(err, STENO_EINVAL, "upstreams.%s.key has a line end", up->name);
        free(up->key);
        up->key = strdup(value);
        return up->key ? 0 : error_nomem(err);
}

static int set_url(struct upstream *up, const char *url, struct steno_error *err)
{
        if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
                return error_set(err, STENO_EINVAL,
                    "upstreams.%s.url \"%.100s\" does not begin with http:// or https://", up->name,
                    url);
        size_t n = strlen(url);
        while (n && url[n - 1] == '/')
                n--;
        free(up->url);
        up->url = strndup(url, n);
        return up->url ? 0 : error_nomem(err);
}

static int set_switch(const struct json *j, json_ref obj, const struct upstream *up,
    const char *key, bool *out, struct steno_error *err)
{
        json_ref r = json_get(j, obj, key);
        if (r == JSON_NONE)
                return 0;
        if (json_type(j, r) != JSON_TRUE && json_type(j, r) != JSON_FALSE)
                return error_set(
                    err, STENO_EINVAL, "upstreams.%s.%s must be true or false", up->name, key);
        *out = json_type(j, r) == JSON_TRUE;
        return 0;
}

static int set_when_gone(
    const struct json *j, json_ref obj, struct upstream *up, struct steno_error *err)
{
        json_ref r = json_get(j, obj, "whenGone");
        if (r != JSON_NONE && !json_is(j, r, "finish") && !json_is(j, r, "cancel"))
                return error_set(err, STENO_EINVAL,
                    "upstreams.%s.whenGone must be \"finish\" or \"cancel\"", up->name);
        up->cancel_when_gone = json_is(j, r, "cancel");
        return 0;
}

static int set_switches(
    struct upstream *up, const struct json *j, json_ref obj, struct steno_error *err)
{
        int rc = set_switch(j, obj, up, "stubs", &up->stubs, err);
        if (rc == 0)
                rc = set_switch(j, obj, up, "contextTools", &up->tools, err);
        if (rc == 0)
                rc = set_when_gone(j, obj, up, err);
        if (rc == 0)
                rc = set_switch(j, obj, up, "bestEffort", &up->best_effort, err);
        up->stubs = up->stubs || up->tools; /* tools without stubs would have nothing to read */
        return rc;
}

static int configure_one(struct upstreams *u, const struct json *j, json_ref key,
    const char *const *env, struct steno_error *err)
{
        static const char *const members[] = {
            "url", "key", "stubs", "contextTools", "whenGone", "bestEffort", NULL};
        char *name = json_dup_string(j, key);
        json_ref value = json_value(j, key);
        char *url = json_dup_string(j, json_get(j, value, "url"));
        char *secret = json_dup_string(j, json_get(j, value, "key"));
        size_t i = name ? index_of(name) : UPSTREAMS_COUNT;
        struct upstream *up = i < UPSTREAMS_COUNT ? &u->list[i] : NULL;
        int rc = 0;
        if (!up)
                rc = error_set(err, STENO_EINVAL,
                    "upstreams: \"%.40s\" is not one of openai, anthropic, gemini, chat",
                    name ? name : "");
        if (rc == 0) {
                char where[40];
                snprintf(where, sizeof where, "upstreams.%s", up->name);
                rc = json_keys_check(j, value, members, where, err);
        }
        if (rc == 0 && url)
                rc = set_url(up, url, err);
        if (rc == 0 && secret)
                rc = set_key(up, secret, env, err);
        if (rc == 0)
                rc = set_switches(up, j, value, err);
        free(name);
        free(url);
        free(secret);
        return rc;
}

int upstreams_configure(
    struct upstreams *u, const char *text, const char *const *env, struct steno_error *err)
{
        int rc = 0;
        for (size_t i = 0; i < UPSTREAMS_COUNT; i++)
                u->list[i] = (struct upstream){.name = known[i].name,
                    .prefix = known[i].prefix,
                    .key_header = known[i].key_header};
        for (size_t i = 0; i < UPSTREAMS_COUNT && rc == 0; i++)
                rc = known[i].url ? set_url(&u->list[i], known[i].url, err) : 0;
        if (rc || !text)
                return rc;
        struct json j;
        json_init(&j);
        rc = json_parse(&j, text, strlen(text), NULL, err);
        for (json_ref k = rc ? JSON_NONE : json_child(&j, 0); k != JSON_NONE && rc == 0;
             k = json_next_key(&j, 0, k))
                rc = configure_one(u, &j, k, env, err);
        json_release(&j);
        return rc;
}

void upstreams_release(struct upstreams *u)
{
        for (size_t i = 0; i < UPSTREAMS_COUNT; i++) {
                free(u->list[i].url);
                free(u->list[i].key);
        }
}
