/* reading.c - see reading.h */
#include "format/reading.h"

#include <string.h>

#include "format/blocks.h"

/* Appends to a list and returns its new end, so that a caller with many extras does not walk the
 * list again. */
static struct extra **add_extra(
    struct reading *r, struct extra **list, struct str key, struct str value, bool inner)
{
        struct extra *x = arena_zalloc(r->arena, sizeof *x);
        while (*list)
                list = &(*list)->next;
        if (!x)
                return list;
        *x = (struct extra){.key = key, .value = value, .inner = inner};
        *list = x;
        return &x->next;
}

static void drop_extra(struct extra **list, const char *key)
{
        while (*list && !str_is((*list)->key, key))
                list = &(*list)->next;
        if (*list)
                *list = (*list)->next;
}

static int find_key(const struct json *j, json_ref key, const char *const *keys)
{
        struct str k = json_inner(j, key);
        bool escaped = json_is_escaped(j, key);
        for (int i = 0; keys[i]; i++) {
                if (escaped ? json_is(j, key, keys[i])
                            : keys[i][0] == (k.n ? k.p[0] : '\0') && str_is(k, keys[i]))
                        return i;
        }
        return -1;
}

/* Keeps a member whose value has no field, unchanged. Also returns the list's new end. */
static struct extra **keep(
    struct reading *r, struct extra **list, const char *key, json_ref v, bool inner)
{
        size_t n = strlen(key);
        char *token = arena_alloc(r->arena, n + 2);
        if (!token)
                return list;
        token[0] = token[n + 1] = '"';
        memcpy(token + 1, key, n);
        return add_extra(r, list, str_span(token, n + 2), json_raw(r->j, v), inner);
}

void reading_members(struct reading *r, json_ref obj, const char *const *keys, json_ref *found,
    struct extra **extras, bool inner)
{
        const struct json *j = r->j;
        for (size_t i = 0; keys[i]; i++)
                found[i] = JSON_NONE;
        if (json_type(j, obj) != JSON_OBJECT)
                return;
        for (json_ref key = json_child(j, obj); key != JSON_NONE;
             key = json_next_key(j, obj, key)) {
                json_ref v = json_value(j, key);
                int i = find_key(j, key, keys);
                if (i < 0) {
                        extras = add_extra(r, extras, json_raw(j, key), json_raw(j, v), inner);
                        continue;
                }
                if (found[i] != JSON_NONE)
                        extras = keep(r, extras, keys[i], found[i], inner);
                found[i] = v;
        }
}

struct str reading_string(struct reading *r, json_ref v)
{
        if (json_type(r->j, v) != JSON_STRING)
                return (struct str){0};
        struct str s = json_inner(r->j, v);
        return s;
}

struct str reading_raw(struct reading *r, json_ref v)
{
        return v == JSON_NONE ? (struct str){0} : json_raw(r->j, v);
}

void reading_keep(struct reading *r, struct extra **extras, const char *key, json_ref v, bool inner)
{
        if (v != JSON_NONE)
                keep(r, extras, key, v, inner);
}

struct str reading_string_or_keep(
    struct reading *r, struct extra **extras, const char *key, json_ref v)
{
        struct str s = reading_string(r, v);
        if (!s.p)
                reading_keep(r, extras, key, v, false);
        return s;
}

void reading_idle(struct extra *extras, const char *key, const char *value)
{
        for (struct extra *x = extras; x; x = x->next)
                if (str_is(str_span(x->key.p + 1, x->key.n - 2), key) && str_is(x->value, value))
                        x->idle = true;
}

struct part *reading_part(struct reading *r, enum part_kind kind, json_ref raw)
{
        struct message *m = r->m;
        if (m->count == r->cap) {
                size_t cap = r->cap ? r->cap * 2 : r->expected ? r->expected : 1;
                struct part *to = arena_alloc(r->arena, cap * sizeof *to);
                if (!to) {
                        /* The arena's failure is sticky, so the reading ends. */
                        r->spare = (struct part){.kind = kind};
                        return &r->spare;
                }
                if (m->count)
                        memcpy(to, m->parts, m->count * sizeof *to);
                m->parts = to;
                r->cap = cap;
        }
        struct part *p = &m->parts[m->count++];
        *p = (struct part){.kind = kind, .raw = reading_raw(r, raw)};
        return p;
}

struct part *reading_opaque(struct reading *r, json_ref raw)
{
        return reading_part(r, PART_OPAQUE, raw);
}

struct part *reading_text(struct reading *r, json_ref string)
{
        struct part *p = reading_part(r, PART_TEXT, string);
        p->text = reading_string(r, string);
        return p;
}

struct part *reading_text_of(
    struct reading *r, json_ref object, const char *key, enum part_kind kind)
{
        const char *const keys[] = {"type", key, NULL};
        json_ref f[2];
        struct extra *extras = NULL;
        reading_members(r, object, keys, f, &extras, false);
        if (json_type(r->j, f[1]) != JSON_STRING)
                return NULL;
        struct part *p = reading_part(r, kind, object);
        p->text = reading_string(r, f[1]);
        p->extras = extras;
        return p;
}

void reading_url(struct media *media, struct str url)
{
        static const char mark[] = ";base64,";
        const char *at = NULL;
        if (str_starts(url, "data:"))
                at = memmem(url.p, url.n < 200 ? url.n : 200, mark, sizeof mark - 1);
        if (!at) {
                media->url = url;
                return;
        }
        media->mime = str_span(url.p + 5, (size_t)(at - url.p) - 5);
        at += sizeof mark - 1;
        media->data = str_span(at, (size_t)(url.p + url.n - at));
}

void reading_children(
    struct reading *r, struct part *of, json_ref list, void (*block)(struct reading *r, json_ref v))
{
        struct message inside = {0};
        struct reading sub = {
            .j = r->j, .arena = r->arena, .m = &inside, .expected = json_count(r->j, list)};
        for (json_ref e = json_child(r->j, list); e != JSON_NONE; e = json_next(r->j, list, e))
                block(&sub, e);
        of->children = inside.parts;
        of->child_count = inside.count;
        of->output_kind = OUTPUT_PARTS;
}

static bool is_there(const struct json *j, json_ref v)
{
        enum json_type t = json_type(j, v);
        return t != JSON_NOTHING && t != JSON_NULL;
}

void reading_input(struct reading *r, struct part *call, json_ref v)
{
        json_ref raw = JSON_NONE;
        if (json_type(r->j, v) == JSON_OBJECT && json_count(r->j, v) == 1)
                raw = json_get(r->j, v, "__raw_arguments");
        call->arguments_text = json_type(r->j, raw) == JSON_STRING;
        call->arguments = call->arguments_text ? reading_string(r, raw) : reading_raw(r, v);
}

enum call_ending reading_ending(struct extra **extras)
{
        for (int i = ENDING_OWN + 1; i < ENDING_COUNT; i++) {
                for (struct extra **x = extras; *x; x = &(*x)->next) {
                        struct str key = str_span((*x)->key.p + 1, (*x)->key.n - 2);
                        if (!str_is(key, members_ending_name(i)) || !str_is((*x)->value, "true"))
                                continue;
                        *x = (*x)->next;
                        return i;
                }
        }
        return ENDING_OWN;
}

/* Returns how the call of an entry with a result ended. */
static enum call_ending ending_of(const struct json *j, json_ref state)
{
        for (int i = ENDING_OWN + 1; i < ENDING_COUNT; i++)
                if (json_is(j, state, members_ending_name(i)))
                        return i;
        return ENDING_OWN;
}

static const char *derived_state(bool answered, bool failed, enum call_ending ending)
{
        if (!answered)
                return "unrecorded";
        return ending ? members_ending_name(ending) : failed ? "error" : "complete";
}

/* Version 0.1 called `unrecorded` so, and pages' own messages still do. This state is replaced by
 * what is known of the call, and by its result. */
static const char OPEN_BEFORE[] = "pending";

/* Reads name and arguments, which are beside the id or in an inner object as in OpenAI's messages.
 * That object stays among the extras. */
static void read_called(
    struct reading *r, json_ref entry, json_ref name, json_ref arguments, struct part *call)
{
        const struct json *j = r->j;
        json_ref in = json_get(j, entry, "function");
        if (name == JSON_NONE && json_type(j, in) == JSON_OBJECT) {
                name = json_get(j, in, "name");
                arguments = json_get(j, in, "arguments");
        }
        call->name = reading_string(r, name);
        call->arguments_text = json_type(j, arguments) == JSON_STRING;
        call->arguments =
            call->arguments_text ? reading_string(r, arguments) : reading_raw(r, arguments);
}

/* Reads {returnDisplay, displayName, description}; any other shape stays an extra. */
static void read_display(struct reading *r, struct part *call, json_ref display)
{
        static const char *const keys[] = {"returnDisplay", "displayName", "description", NULL};
        json_ref f[3];
        struct extra *others = NULL;
        if (json_type(r->j, display) != JSON_OBJECT || !json_count(r->j, display))
                return;
        reading_members(r, display, keys, f, &others, false);
        if (others)
                return;
        call->display = reading_raw(r, f[0]);
        call->display_name = reading_raw(r, f[1]);
        call->description = reading_raw(r, f[2]);
        drop_extra(&call->extras, "\"display\"");
}

void reading_entry(struct reading *r, json_ref entry, bool derived)
{
        enum { ID, NAME, ARGUMENTS, STATE, RESULT, ERROR, STEPS, INVOKED, DURATION, REF, COUNT };
        static const char *const keys[] = {"id", "name", "arguments", "state", "result", "error",
            "steps", "invokedAt", "duration", "ref", NULL};
        json_ref f[COUNT];
        struct part call = {.kind = PART_CALL, .raw = reading_raw(r, entry)};
        reading_members(r, entry, keys, f, &call.extras, false);
        call.id = reading_string(r, f[ID]);
        read_called(r, entry, f[NAME], f[ARGUMENTS], &call);
        if (derived)
                read_display(r, &call, json_get(r->j, entry, "display"));
        call.steps = reading_raw(r, f[STEPS]);
        call.invoked_at = reading_raw(r, f[INVOKED]);
        call.duration = reading_raw(r, f[DURATION]);
        call.ref = reading_raw(r, f[REF]);

        bool failed = is_there(r->j, f[ERROR]);
        bool answered = failed || is_there(r->j, f[RESULT]);
        enum call_ending ending = answered ? ending_of(r->j, f[STATE]) : ENDING_OWN;
        json_ref out = failed ? f[ERROR] : f[RESULT];
        if (derived && !answered && json_is(r->j, f[STATE], OPEN_BEFORE))
                call.state = OPEN_BEFORE;
        else if (!derived || !json_is(r->j, f[STATE], derived_state(answered, failed, ending)))
                reading_keep(r, &call.extras, "state", f[STATE], false);
        if (!answered || failed)
                reading_keep(r, &call.extras, "result", f[RESULT], false);
        if (!failed)
                reading_keep(r, &call.extras, "error", f[ERROR], false);
        *reading_part(r, PART_CALL, entry) = call;
        if (!answered)
                return;
        struct part *p = reading_part(r, PART_RESULT, JSON_NONE);
        p->with_call = true;
        p->id = call.id;
        p->name = call.name;
        p->error = failed;
        p->ending = ending;
        p->display = call.display;
        blocks_read_output(r, p, out);
}
