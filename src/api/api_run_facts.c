/*
 * api_run_facts.c - what journals know of calls that have no result (run.h).
 *
 * A provider may use the same call ids in every turn, so a call is identified by its id and by the
 * message that made it. Newer journals name that message (`of`). An older dispatch only says how
 * long the log was (`after`): a call belongs to the first dispatch with its id that was written
 * when the call was in the log. That is enough, because within a run all calls of one reply are
 * answered before the next reply is asked for.
 */
#include "api/api_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/spill.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/limits.h"
#include "model/event.h"

struct dispatched {
        struct str call;
        uint64_t request;
        uint64_t after;
        uint64_t of; /* 0: an earlier version does not say it */
        bool outcome;
        char at[TIME_TEXT]; /* when it began */
        struct buf steps;   /* elements of an array */
        size_t step_count;
        struct str ref; /* id of the artifact that gets its output, or nothing */
};

struct run_facts {
        struct run_facts *next;
        char name[65];
        bool there; /* the journal could be read */
        bool held;
        bool finished;
        bool interrupted; /* ended because someone said stop */
        struct arena arena;
        struct dispatched *list;
        size_t count;
        size_t cap;
};

void api_run_knowledge_init(struct api_run_knowledge *k, struct backend_conv *conv)
{
        *k = (struct api_run_knowledge){.conv = conv};
}

void api_run_knowledge_release(struct api_run_knowledge *k)
{
        for (struct run_facts *f = k->runs, *next; f; f = next) {
                next = f->next;
                for (size_t i = 0; i < f->count; i++)
                        buf_release(&f->list[i].steps);
                arena_release(&f->arena);
                free(f->list);
                free(f);
        }
        k->runs = NULL;
        backend_conv_release(k->origin);
        k->origin = NULL;
}

/* ---- reading the lifecycle ---- */

/* Parses a line of the lifecycle; *call is in the arena. */
static bool read_lifecycle(
    struct json *j, struct str data, struct arena *arena, struct dispatched *out)
{
        struct buf call;
        *out = (struct dispatched){0};
        if (json_parse(j, data.p, data.n, NULL, NULL))
                return false;
        buf_init(&call, 64 * KIB);
        json_u64(j, json_get(j, 0, "request"), &out->request);
        json_u64(j, json_get(j, 0, "after"), &out->after);
        json_u64(j, json_get(j, 0, "of"), &out->of);
        bool ok = json_string(j, json_get(j, 0, "call"), &call, NULL);
        if (ok)
                out->call = arena_dup(arena, buf_str(&call));
        buf_release(&call);
        return ok && out->call.p;
}

static int add_dispatch(struct run_facts *f, struct dispatched d)
{
        if (!grow_room(f->list, f->count, f->cap))
                return STENO_ENOMEM;
        buf_init(&d.steps, MESSAGE_MAX);
        f->list[f->count++] = d;
        return 0;
}

/* The call that is running under this id. A provider may use an id again, but only after its
 * result. */
static struct dispatched *running(struct run_facts *f, struct str call)
{
        for (size_t i = f->count; i-- > 0;)
                if (str_eq(f->list[i].call, call))
                        return f->list[i].outcome ? NULL : &f->list[i];
        return NULL;
}

/* {"text","progress"?,"total"?}, as the message of its result would have had it. */
static void add_step(struct run_facts *f, const struct json *j)
{
        static const char *const members[] = {"text", "progress", "total"};
        struct buf call;
        buf_init(&call, 64 * KIB);
        struct dispatched *d =
            json_string(j, json_get(j, 0, "toolCallId"), &call, NULL) && !call.failed
                ? running(f, buf_str(&call))
                : NULL;
        buf_release(&call);
        if (!d || d->step_count++ >= CALL_STEPS_MAX)
                return;
        if (d->steps.n)
                buf_putc(&d->steps, ',');
        struct jsonw w = jsonw_to(&d->steps);
        jsonw_object(&w);
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
                json_ref v = json_get(j, 0, members[i]);
                if (v != JSON_NONE)
                        jsonw_field_copy(&w, members[i], j, v);
        }
        jsonw_object_end(&w);
}

static void note_output(struct run_facts *f, const struct json *j, struct str call)
{
        struct dispatched *d = running(f, call);
        struct buf ref;
        buf_init(&ref, 4 * KIB);
        if (d && json_string(j, json_get(j, 0, "ref"), &ref, NULL) && !ref.failed)
                d->ref = arena_dup(&f->arena, buf_str(&ref));
        buf_release(&ref);
}

static void note_outcome(struct run_facts *f, struct dispatched d)
{
        for (size_t i = f->count; i-- > 0;) {
                if (f->list[i].request == d.request && str_eq(f->list[i].call, d.call)) {
                        f->list[i].outcome = true;
                        return;
                }
        }
}

static int take_lifecycle(struct run_facts *f, const struct run_event *e, struct json *j)
{
        struct dispatched d;
        if (!read_lifecycle(j, e->data, &f->arena, &d))
                return f->arena.failed;
        if (event_is(e->type, STENO_EVENT_DISPATCH)) {
                snprintf(d.at, sizeof d.at, "%.*s", (int)e->at.n, e->at.p);
                return add_dispatch(f, d);
        }
        if (event_is(e->type, STENO_EVENT_OUTPUT))
                note_output(f, j, d.call);
        else
                note_outcome(f, d);
        return 0;
}

static int take_event(void *ctx, const struct run_event *e)
{
        struct run_facts *f = ctx;
        bool lifecycle = event_is(e->type, STENO_EVENT_DISPATCH) ||
                         event_is(e->type, STENO_EVENT_OUTCOME) ||
                         event_is(e->type, STENO_EVENT_OUTPUT);
        bool step = event_is(e->type, STENO_EVENT_TOOL_CALL_STEP);
        bool finished = event_is(e->type, STENO_EVENT_RUN_FINISHED);
        struct json j;
        int rc = 0;
        if (!lifecycle && !step && !finished)
                return 0;
        json_init(&j);
        if (lifecycle) {
                rc = take_lifecycle(f, e, &j);
        } else if (json_parse(&j, e->data.p, e->data.n, NULL, NULL) == 0) {
                if (step)
                        add_step(f, &j);
                else
                        f->interrupted = json_is(&j, json_get(&j, 0, "reason"), "interrupted");
        }
        json_release(&j);
        return rc;
}

/* The conversation that this one was forked from, which has the journals of earlier runs; NULL:
 * there is none, or not any more. */
static struct backend_conv *origin_of(struct api_run_knowledge *k)
{
        char *text = NULL;
        size_t n = 0;
        struct json j;
        if (k->origin || k->looked)
                return k->origin;
        k->looked = true;
        json_init(&j);
        if (backend_conv_meta(k->conv, &text, &n, NULL) == 0 &&
            json_parse(&j, text, n, NULL, NULL) == 0) {
                json_ref origin = json_get(&j, 0, "origin");
                char *project = json_dup_string(&j, json_get(&j, origin, "project"));
                char *id = json_dup_string(&j, json_get(&j, origin, "conversation"));
                if (project && id &&
                    backend_conv_open(
                        backend_conv_store(k->conv), str_of(project), str_of(id), &k->origin, NULL))
                        k->origin = NULL;
                free(project);
                free(id);
        }
        json_release(&j);
        free(text);
        return k->origin;
}

static struct run_facts *load(struct api_run_knowledge *k, const char *name)
{
        struct run_state state;
        for (struct run_facts *f = k->runs; f; f = f->next)
                if (strcmp(f->name, name) == 0)
                        return f;
        struct run_facts *f = calloc(1, sizeof *f);
        if (!f)
                return NULL;
        memcpy(f->name, name, strlen(name) + 1);
        arena_init(&f->arena);
        f->next = k->runs;
        k->runs = f;
        struct backend_conv *in = k->conv;
        int rc = backend_run_look(in, name, &state, NULL);
        if (rc == STENO_ENOTFOUND && (in = origin_of(k)))
                rc = backend_run_look(in, name, &state, NULL);
        if (rc)
                return f;
        /* A run that lives in the origin will not write here. */
        f->held = in == k->conv && !state.finished && !backend_run_is_dead(in, name);
        f->finished = state.finished;
        backend_run_state_release(&state);
        f->there = backend_run_read(in, name, 0, take_event, f, NULL) == 0;
        return f;
}

/* ---- classes ---- */

static const struct dispatched *find_dispatch(
    const struct run_facts *f, uint64_t seq, struct str call)
{
        for (size_t i = 0; i < f->count; i++) {
                const struct dispatched *d = &f->list[i];
                if ((d->of ? d->of == seq : d->after >= seq) && str_eq(d->call, call))
                        return d;
        }
        return NULL;
}

static struct str quoted(struct run_facts *f, struct str text)
{
        struct buf b;
        buf_init(&b, 4 * KIB);
        json_put_string(&b, text);
        struct str s = b.failed ? (struct str){0} : arena_dup(&f->arena, buf_str(&b));
        buf_release(&b);
        return s;
}

/* A member that is left out is not known, or there was no memory for it. */
static void put_ref(
    struct api_run_knowledge *k, struct run_facts *f, struct str id, struct repair_facts *out)
{
        struct artifact_info info;
        struct buf b;
        if (!id.n || backend_artifact_find(k->conv, id, &info, NULL))
                return;
        buf_init(&b, 4 * KIB);
        struct jsonw w = jsonw_to(&b);
        spill_put_ref(&w, &info);
        if (!b.failed) {
                out->ref = arena_dup(&f->arena, buf_str(&b));
                out->ref_id = id;
        }
        buf_release(&b);
}

static void put_facts(struct api_run_knowledge *k, struct run_facts *f, struct str run,
    const struct dispatched *d, struct repair_facts *out)
{
        *out = (struct repair_facts){.run = quoted(f, run)};
        if (!d)
                return;
        out->invoked_at = quoted(f, str_of(d->at));
        put_ref(k, f, d->ref, out);
        if (!d->steps.n || d->steps.failed)
                return;
        char *steps = arena_alloc(&f->arena, d->steps.n + 2);
        if (!steps)
                return;
        steps[0] = '[';
        memcpy(steps + 1, d->steps.p, d->steps.n);
        steps[d->steps.n + 1] = ']';
        out->steps = str_span(steps, d->steps.n + 2);
}

enum repair_class api_run_classify(struct api_run_knowledge *k, struct str run, uint64_t seq,
    struct str call, struct repair_facts *facts)
{
        char name[65];
        if (run.n == 0 || !id_is_legal(run, ID_MAX) || id_file_name(run, name))
                return REPAIR_UNRECORDED;
        struct run_facts *f = load(k, name);
        if (!f || !f->there)
                return REPAIR_UNRECORDED;
        const struct dispatched *found = find_dispatch(f, seq, call);
        if (facts)
                put_facts(k, f, run, found, facts);
        if (f->held && !f->finished)
                return found ? REPAIR_RUNNING : REPAIR_WAITING;
        if (!found)
                return REPAIR_NOT_DISPATCHED;
        if (found->outcome)
                return REPAIR_UNRECORDED; /* its message was refused, or is not yet recovered */
        return f->interrupted ? REPAIR_INTERRUPTED : REPAIR_INDETERMINATE;
}

/* ---- outcomes ---- */

struct outcomes {
        int (*each)(void *ctx, const struct run_outcome *o);
        void *ctx;
};

static int take_outcome(void *ctx, const struct run_event *e)
{
        struct outcomes *w = ctx;
        struct dispatched d;
        struct arena arena;
        struct json j;
        int rc = 0;
        if (!event_is(e->type, STENO_EVENT_OUTCOME))
                return 0;
        arena_init(&arena);
        json_init(&j);
        if (read_lifecycle(&j, e->data, &arena, &d)) {
                struct run_outcome o = {.seq = e->seq,
                    .request = d.request,
                    .of = d.of,
                    .call = d.call,
                    .message = json_raw(&j, json_get(&j, 0, "message"))};
                rc = o.message.n ? w->each(w->ctx, &o) : 0;
        }
        json_release(&j);
        arena_release(&arena);
        return rc;
}

int api_run_each_outcome(struct backend_conv *conv, const char *name,
    int (*each)(void *ctx, const struct run_outcome *o), void *ctx, struct steno_error *err)
{
        struct outcomes w = {each, ctx};
        return backend_run_read(conv, name, 0, take_outcome, &w, err);
}
