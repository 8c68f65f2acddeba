/*
 * digest_usage.c - the tokens of a digest: what events, transcripts and the gateway say that a
 * reply took, in the spelling of each provider.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "http/digest_reading.h"

#define USAGE_MAX 20000 /* replies */

static void take_number(const struct json *j, json_ref obj, const char *key, uint64_t *to)
{
        uint64_t n = 0;
        if (json_u64(j, json_get(j, obj, key), &n))
                *to += n;
}

/* As the providers spell it. */
static struct digest_tokens tokens_of(const struct json *j, json_ref u)
{
        struct digest_tokens t = {0};
        take_number(j, u, "prompt_tokens", &t.in);
        take_number(j, u, "completion_tokens", &t.out);
        take_number(j, json_get(j, u, "prompt_tokens_details"), "cached_tokens", &t.cached);
        take_number(j, json_get(j, u, "input_tokens_details"), "cached_tokens", &t.cached);
        take_number(j, u, "output_tokens", &t.out);
        take_number(j, u, "input_tokens", &t.in);
        /* Where what was cached is counted apart, it was read all the same. */
        uint64_t apart = 0;
        take_number(j, u, "cache_read_input_tokens", &apart);
        t.cached += apart;
        t.in += apart;
        take_number(j, u, "cache_creation_input_tokens", &t.in);
        take_number(j, u, "promptTokenCount", &t.in);
        take_number(j, u, "toolUsePromptTokenCount", &t.in);
        take_number(j, u, "candidatesTokenCount", &t.out);
        take_number(j, u, "thoughtsTokenCount", &t.out);
        take_number(j, u, "cachedContentTokenCount", &t.cached);
        return t;
}

static void add_tokens(struct digest_tokens *to, struct digest_tokens t)
{
        to->in += t.in;
        to->out += t.out;
        to->cached += t.cached;
}

static void take_tokens(struct digest_tokens *from, struct digest_tokens t)
{
        from->in -= t.in;
        from->out -= t.out;
        from->cached -= t.cached;
}

#define USAGE_LOOK 64 /* as far back an earlier word about the same reply is looked for */

/* What was counted of a message: a later word about it takes the place of an earlier one. */
static void put_usage(struct digest_entry *e, struct str model, uint64_t before, uint64_t message,
    struct digest_tokens t)
{
        struct digest *d = &e->d;
        size_t m =
            model.n ? digest_count_of(e, &d->models, &d->model_count, model) : DIGEST_COUNTS_MAX;
        struct digest_usage *u = NULL;
        for (size_t i = d->usage_count, n = 0; i > 0 && n < USAGE_LOOK && !u; i--, n++)
                if (d->usage[i - 1].message == before)
                        u = &d->usage[i - 1];
        if (u) {
                take_tokens(&d->tokens, u->tokens);
                if (m < DIGEST_COUNTS_MAX)
                        take_tokens(&d->models[m].tokens, u->tokens);
                *u = (struct digest_usage){message, t};
        } else if (d->usage_count < USAGE_MAX) {
                struct digest_usage *grown =
                    digest_grow(d->usage, d->usage_count, sizeof *d->usage);
                if (!grown) {
                        e->failed = true;
                        return;
                }
                d->usage = grown;
                d->usage[d->usage_count++] = (struct digest_usage){message, t};
        }
        add_tokens(&d->tokens, t);
        if (m < DIGEST_COUNTS_MAX)
                add_tokens(&d->models[m].tokens, t);
}

/* Of an event, {"messageId","model","usage"}. */
void digest_take_usage(struct digest_entry *e, const struct json *j)
{
        char *message = json_dup_string(j, json_get(j, 0, "messageId"));
        char *model = json_dup_string(j, json_get(j, 0, "model"));
        uint64_t hash = message ? hash_64(message, strlen(message)) : 0;
        if (message && model)
                put_usage(e, str_of(model), hash, hash, tokens_of(j, json_get(j, 0, "usage")));
        free(message);
        free(model);
}

/* Of a reply that says so itself, as transcripts of other tools do. */
void digest_take_said_usage(struct digest_entry *e, const struct walk_message *m)
{
        uint64_t message = hash_64(m->id, strlen(m->id));
        uint64_t reply = m->reply.n ? hash_64(m->reply.p, m->reply.n) : message;
        struct json j;
        json_init(&j);
        if (json_parse(&j, m->usage.p, m->usage.n, NULL, NULL) == 0) {
                uint64_t before = reply == e->reply ? e->reply_message : message;
                put_usage(e, m->model, before, message, tokens_of(&j, 0));
                e->reply = reply;
                e->reply_message = message;
        }
        json_release(&j);
}

/* Of a reply that came through the gateway, which notes what the endpoint said about it. */
int digest_take_meta(struct digest_entry *e, const struct steno_record *r)
{
        const char *target = steno_record_target(r);
        uint64_t message = hash_64(target, strlen(target));
        char *text = NULL;
        size_t n = 0;
        struct json j;
        json_init(&j);
        if (steno_record_message(r, &text, &n, NULL) == 0 &&
            json_parse(&j, text, n, NULL, NULL) == 0) {
                json_ref facts = json_get(&j, 0, "gateway");
                json_ref usage = json_get(&j, facts, "usage");
                struct str model = json_inner(&j, json_get(&j, facts, "model"));
                if (json_type(&j, usage) == JSON_OBJECT)
                        put_usage(e, model, message, message, tokens_of(&j, usage));
                size_t m = model.n && e->unnamed == message
                               ? digest_count_of(e, &e->d.models, &e->d.model_count, model)
                               : DIGEST_COUNTS_MAX;
                if (m < DIGEST_COUNTS_MAX)
                        e->d.models[m].calls++;
                e->unnamed = 0;
        }
        json_release(&j);
        steno_free(text);
        return e->failed;
}
