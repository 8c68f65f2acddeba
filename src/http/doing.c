/* doing.c - see doing.h */
#include "http/doing.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "steno.h"

#define CALLS_MAX 1024

void doing_clear(struct doing *d)
{
        free(d->calls);
        *d = (struct doing){0};
}

static uint64_t hash_of(const struct json *j, json_ref text)
{
        char *z = json_dup_string(j, text);
        uint64_t hash = z ? hash_64(z, strlen(z)) : 0;
        free(z);
        return hash;
}

/* The newest of that id: providers use ids again, but not before the result is there. */
static struct doing_call *call_of(struct doing *d, uint64_t id)
{
        for (size_t i = d->count; i > 0; i--)
                if (d->calls[i - 1].id == id)
                        return &d->calls[i - 1];
        return NULL;
}

static int add_call(struct doing *d, const struct json *j)
{
        if (d->count == CALLS_MAX)
                return 0;
        struct doing_call *list = realloc(d->calls, (d->count + 1) * sizeof *list);
        if (!list)
                return STENO_ENOMEM;
        d->calls = list;
        struct doing_call *c = &list[d->count++];
        *c = (struct doing_call){.message = hash_of(j, json_get(j, 0, "messageId")),
            .id = hash_of(j, json_get(j, 0, "toolCallId"))};
        char *name = json_dup_string(j, json_get(j, 0, "toolName"));
        size_t n = name ? strlen(name) : 0;
        if (n < sizeof c->name) /* a longer one is none that a tool may have */
                memcpy(c->name, name ? name : "", n);
        free(name);
        return 0;
}

static void drop_call(struct doing *d, struct doing_call *c)
{
        if (!c)
                return;
        size_t at = (size_t)(c - d->calls);
        memmove(c, c + 1, (--d->count - at) * sizeof *c);
}

static int take_call(struct doing *d, enum steno_event type, int64_t at, const struct json *j)
{
        bool lifecycle = type == STENO_EVENT_DISPATCH || type == STENO_EVENT_OUTCOME;
        struct doing_call *c =
            call_of(d, hash_of(j, json_get(j, 0, lifecycle ? "call" : "toolCallId")));
        if (type == STENO_EVENT_TOOL_CALL_START) {
                d->asked_at = 0;
                return add_call(d, j);
        }
        if (!c)
                return 0;
        if (type == STENO_EVENT_TOOL_CALL_APPROVAL) {
                c->phase =
                    json_is(j, json_get(j, 0, "state"), "pending") ? DOING_WAITING : DOING_QUEUED;
        } else if (type == STENO_EVENT_DISPATCH) {
                c->phase = DOING_RUNNING;
                c->at = at;
        } else if (type == STENO_EVENT_OUTCOME) {
                c->phase = DOING_ENDED;
                c->end = at;
        } else {
                drop_call(d, c);
        }
        return 0;
}

int doing_take(struct doing *d, const char *type, const char *at, const char *data, size_t n)
{
        enum steno_event event = event_find(type);
        int64_t ms = 0;
        int rc = 0;
        struct json j;
        time_parse(at, strlen(at), &ms);
        switch (event) {
        case STENO_EVENT_REQUEST:
                doing_clear(d);
                d->asked_at = ms;
                break;
        case STENO_EVENT_FINAL_MESSAGE:
        case STENO_EVENT_RUN_ERROR:
        case STENO_EVENT_RUN_FINISHED:
                doing_clear(d);
                break;
        case STENO_EVENT_TOOL_CALL_START:
        case STENO_EVENT_TOOL_CALL_APPROVAL:
        case STENO_EVENT_TOOL_CALL_COMPLETE:
        case STENO_EVENT_TOOL_CALL_ERROR:
        case STENO_EVENT_DISPATCH:
        case STENO_EVENT_OUTCOME:
                json_init(&j);
                if (json_parse(&j, data, n, NULL, NULL) == 0)
                        rc = take_call(d, event, ms, &j);
                json_release(&j);
                break;
        default:
                break;
        }
        return rc;
}

char doing_work(const struct doing *d, int64_t now, int64_t *from, int64_t *to)
{
        bool running = false;
        *from = d->asked_at;
        *to = now;
        if (d->asked_at)
                return 'm';
        int64_t end = 0;
        for (size_t i = 0; i < d->count; i++) {
                const struct doing_call *c = &d->calls[i];
                if (!c->at)
                        continue;
                running = running || c->phase == DOING_RUNNING;
                end = c->end > end ? c->end : end;
                if (!*from || c->at < *from)
                        *from = c->at;
        }
        if (!running)
                *to = end;
        return *from ? 't' : 0;
}

const struct doing_call *doing_find(const struct doing *d, struct str message, struct str call)
{
        uint64_t of = hash_64(message.p, message.n), id = hash_64(call.p, call.n);
        for (size_t i = d->count; i > 0; i--)
                if (d->calls[i - 1].id == id && d->calls[i - 1].message == of)
                        return &d->calls[i - 1];
        return NULL;
}

bool doing_newest(const struct doing *d, int64_t at)
{
        return d->live && at >= d->asked_at;
}

const struct doing_call *doing_first(const struct doing *d)
{
        const struct doing_call *first = NULL;
        for (size_t i = 0; i < d->count; i++)
                if (d->calls[i].phase == DOING_RUNNING && (!first || d->calls[i].at < first->at))
                        first = &d->calls[i];
        return first;
}
