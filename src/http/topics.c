/* topics.c - see topics.h */
#include "http/topics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/percent.h"
#include "http/follow.h"
#include "http/server_core.h"
#include "http/waiting.h"
#include "model/event.h"

#define LIST_MS 1000 /* between two looks at the list of conversations */
#define LIST_TOP 100 /* of it are compared */
#define RUNS_MS 2000 /* between two looks at its runs, while nothing is appended */
#define DEAD_MS 1500 /* without an event a run may be dead */

void topic_free(struct topic *t)
{
        if (!t)
                return;
        steno_conv_close(t->conv);
        free(t->name);
        free(t->what);
        free(t->ref);
        free(t);
}

void topics_free(struct topic *list)
{
        for (struct topic *next; list; list = next) {
                next = list->next;
                topic_free(list);
        }
}

/* False: it is not in the list. */
bool topics_drop(struct topic **list, const char *name)
{
        for (struct topic **at = list; *at; at = &(*at)->next) {
                struct topic *t = *at;
                if (strcmp(t->name, name) == 0) {
                        *at = t->next;
                        topic_free(t);
                        return true;
                }
        }
        return false;
}

/* A percent-encoded piece, decoded; NULL: it is not one, or memory is out. */
static char *decoded(struct str s)
{
        struct arena arena;
        struct str text;
        char *out = NULL;
        arena_init(&arena);
        if (s.n && percent_decode(&arena, s, false, &text))
                out = strndup(text.p, text.n);
        arena_release(&arena);
        return out;
}

/* Takes a name apart. */
static bool topic_read(struct topic *t, struct str name)
{
        const char *slash;
        const char *mark = memchr(name.p, '#', name.n);
        if (mark)
                name.n = (size_t)(mark - name.p);
        if (str_is(name, "list")) {
                t->kind = TOPIC_LIST;
                return true;
        }
        if (str_is(name, "approvals")) {
                t->kind = TOPIC_APPROVALS;
                return true;
        }
        if (name.n < 3 || name.n > TOPIC_MAX || name.p[1] != '/')
                return false;
        struct str rest = str_span(name.p + 2, name.n - 2);
        switch (name.p[0]) {
        case 'c':
                t->kind = TOPIC_CONVERSATION;
                t->what = decoded(rest);
                return t->what != NULL;
        case 'r':
                t->kind = TOPIC_RUN;
                t->what = decoded(rest);
                return t->what != NULL;
        case 'o':
                t->kind = TOPIC_OUTPUT;
                slash = memchr(rest.p, '/', rest.n);
                if (!slash)
                        return false;
                t->what = decoded(str_span(rest.p, (size_t)(slash - rest.p)));
                t->ref = decoded(str_span(slash + 1, rest.n - (size_t)(slash - rest.p) - 1));
                return t->what && t->ref;
        default:
                return false;
        }
}

static struct topic *topic_new(struct str name, uint64_t at)
{
        struct topic *t = calloc(1, sizeof *t);
        if (t) {
                t->at = at;
                t->name = strndup(name.p, name.n);
                t->moved_ms = http_now_ms();
        }
        if (!t || !t->name || memchr(name.p, '\n', name.n) || memchr(name.p, '\r', name.n) ||
            !topic_read(t, name)) {
                topic_free(t);
                return NULL;
        }
        return t;
}

/* The topics of an object; *count is how many. */
int topics_read(
    const struct json *j, json_ref from, struct topic **out, size_t *count, struct steno_error *err)
{
        *out = NULL;
        *count = 0;
        if (from == JSON_NONE)
                return 0;
        if (json_type(j, from) != JSON_OBJECT)
                return error_set(err, STENO_EINVAL, "topics must be an object");
        for (json_ref k = json_child(j, from); k != JSON_NONE; k = json_next_key(j, from, k)) {
                struct buf name;
                uint64_t at = 0;
                buf_init(&name, TOPIC_MAX);
                json_u64(j, json_value(j, k), &at);
                struct topic *t = json_string(j, k, &name, NULL) && !name.failed && name.n
                                      ? topic_new(buf_str(&name), at)
                                      : NULL;
                buf_release(&name);
                if (!t || ++*count > TOPICS_MAX) {
                        struct str raw = json_raw(j, k);
                        topic_free(t);
                        topics_free(*out);
                        *out = NULL;
                        return error_set(err, STENO_EINVAL,
                            "%.*s is not a topic, or there are too many",
                            (int)(raw.n < 100 ? raw.n : 100), raw.p);
                }
                t->next = *out;
                *out = t;
        }
        return 0;
}

/* ---- looking at one topic ---- */

static void tell(struct topic_look *l, struct str data)
{
        if (!stream_event(l->stream, NULL, l->t->name, data.p, data.n))
                l->t->over = true;
        l->t->once = true;
        l->t->moved_ms = http_now_ms();
        l->moved = true;
}

/* The last that is said about a topic. */
static void tell_end(struct topic_look *l, const char *data)
{
        tell(l, str_of(data));
        l->t->over = true;
}

/* Tells it when it is not what was told before. */
static void tell_new(struct topic_look *l, struct str data)
{
        uint64_t hash = hash_64(data.p, data.n);
        if (l->t->once && hash == l->t->told)
                return;
        l->t->told = hash;
        tell(l, data);
}

/* Is it time for another look at what costs something? */
static bool is_due(struct topic *t, int ms)
{
        int64_t now = http_now_ms();
        if (t->look_ms && now - t->look_ms < ms)
                return false;
        t->look_ms = now;
        return true;
}

static void look_list(struct topic_look *l)
{
        struct steno_list_options opt = {.size = sizeof opt, .limit = LIST_TOP};
        struct buf all;
        char *json = NULL;
        char data[40];
        if (!is_due(l->t, LIST_MS) || steno_list(l->server->store, l->project, &opt, &json, NULL))
                return;
        /* A list also shows which conversations are at work. A run may begin without storing
         * anything, and it ends a moment after its last message is stored. */
        buf_init(&all, 0);
        buf_puts(&all, json);
        steno_free(json);
        waiting_put_states(l->server->waiting, l->project, &all);
        snprintf(data, sizeof data, "{\"state\":\"%016llx\"}",
            (unsigned long long)hash_64(all.p, all.n));
        if (!all.failed)
                tell_new(l, str_of(data));
        buf_release(&all);
}

static void look_approvals(struct topic_look *l)
{
        struct server *s = l->server;
        struct buf out;
        buf_init(&out, 0);
        waiting_put(s->waiting, l->project, &out);
        if (!out.failed)
                tell_new(l, buf_str(&out));
        buf_release(&out);
}

/* Opens the topic's conversation; false: it is not there. */
static bool open_conv(struct topic_look *l)
{
        struct topic *t = l->t;
        if (!t->conv && steno_conv_open(l->server->store, l->project, t->what, &t->conv, NULL)) {
                tell_end(l, "{\"type\":\"gone\"}");
                return false;
        }
        return true;
}

static void look_conversation(struct topic_look *l)
{
        struct topic *t = l->t;
        uint64_t seq = 0;
        char *runs = NULL;
        char data[64];
        if (!open_conv(l))
                return;
        if (steno_conv_last_seq(t->conv, &seq, NULL)) {
                tell_end(l, "{\"type\":\"gone\"}");
                return;
        }
        if (seq == t->at && t->once) {
                if (!is_due(t, RUNS_MS))
                        return;
                /* One that is open does not notice that it was moved to the trash. */
                steno_conv_close(t->conv);
                t->conv = NULL;
                if (!open_conv(l))
                        return;
        }
        if (steno_run_list(t->conv, &runs, NULL))
                return;
        t->at = seq;
        snprintf(data, sizeof data, "{\"lastSeq\":%llu,\"runs\":\"%016llx\"}",
            (unsigned long long)seq, (unsigned long long)hash_64(runs, strlen(runs)));
        steno_free(runs);
        tell_new(l, str_of(data));
}

static int hand_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct topic_look *l = ctx;
        struct buf out;
        (void)at;
        if (!stream_has_room(l->stream) || l->t->over)
                return 1;
        l->t->at = seq;
        if (!event_is_shown(type))
                return 0;
        buf_init(&out, 0);
        buf_printf(&out, "{\"type\":\"%s\",\"seq\":%llu,\"data\":", type, (unsigned long long)seq);
        buf_put(&out, data, n);
        buf_putc(&out, '}');
        if (out.failed)
                l->t->over = true;
        else
                tell(l, buf_str(&out));
        buf_release(&out);
        if (event_find(type) == STENO_EVENT_RUN_FINISHED)
                l->t->over = true;
        return 0;
}

static void look_run(struct topic_look *l)
{
        struct server *s = l->server;
        struct topic *t = l->t;
        if (steno_run_read(s->store, l->project, t->what, t->at, hand_event, l, NULL) < 0) {
                tell_end(l, "{\"type\":\"gone\"}");
                return;
        }
        if (http_now_ms() - t->moved_ms > DEAD_MS && is_due(t, DEAD_MS))
                follow_bury(s, l->project, t->what);
}

/* Tells what a read of an output answered. */
static void tell_output(struct topic_look *l, const char *json, const struct json *j)
{
        struct topic *t = l->t;
        uint64_t next = t->at;
        struct buf out;
        json_u64(j, json_get(j, 0, "next_offset"), &next);
        bool unfinished = json_bool(j, json_get(j, 0, "unfinished"), false);
        bool done = json_bool(j, json_get(j, 0, "done"), false);
        if (next > t->at) {
                buf_init(&out, 0);
                buf_printf(&out, "{\"type\":\"tail\",%s", json + 1);
                if (!out.failed)
                        tell(l, buf_str(&out));
                buf_release(&out);
                t->at = next;
        }
        if (!t->over && done && !unfinished)
                tell_end(l, "{\"type\":\"end\"}");
}

static void look_output(struct topic_look *l)
{
        struct topic *t = l->t;
        struct buf args;
        struct json j;
        char *json = NULL;
        if (!open_conv(l))
                return;
        buf_init(&args, 8 * KIB);
        json_init(&j);
        buf_puts(&args, "{\"ref\":");
        json_put_string(&args, str_of(t->ref));
        buf_printf(&args, ",\"offset\":%llu}", (unsigned long long)t->at);
        if (args.failed || steno_context(t->conv, "read", args.p, args.n, &json, NULL) ||
            json_parse(&j, json, strlen(json), NULL, NULL))
                tell_end(l, "{\"type\":\"gone\"}");
        else
                tell_output(l, json, &j);
        json_release(&j);
        steno_free(json);
        buf_release(&args);
}

void topic_look(struct topic_look *l)
{
        switch (l->t->kind) {
        case TOPIC_LIST:
                look_list(l);
                break;
        case TOPIC_APPROVALS:
                look_approvals(l);
                break;
        case TOPIC_CONVERSATION:
                look_conversation(l);
                break;
        case TOPIC_RUN:
                look_run(l);
                break;
        case TOPIC_OUTPUT:
                look_output(l);
                break;
        }
}
