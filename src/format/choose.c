/* choose.c - finds the format of a history if it is certain; see format_choose in format.h. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "format/format.h"
#include "format/spelling.h"
#include "model/token.h"

/* Is it a member that holds content or calls? A reader that has no place for such a member does not
 * know the format. */
static bool is_structure(struct str key)
{
        static const char *const names[] = {"content", "parts", "tool_calls", "toolCalls",
            "toolInvocations", "function_call", "attachments", "data", "kwargs", "type", "output",
            "arguments", "call_id", "tool_call_id", NULL};
        for (size_t i = 0; names[i]; i++)
                if (str_is(str_span(key.p + 1, key.n - 2), names[i]))
                        return true;
        return false;
}

static bool knows_parts(const struct part *parts, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (parts[i].kind == PART_OPAQUE ||
                    !knows_parts(parts[i].children, parts[i].child_count))
                        return false;
        return true;
}

static bool knows(const struct message *m)
{
        for (const struct extra *x = m->extras; x; x = x->next)
                if (!x->idle && is_structure(x->key) && !str_is(x->value, "null"))
                        return false;
        return knows_parts(m->parts, m->count);
}

/* Reads the whole list, but skips messages without content. False: the format does not accept
 * it. */
static bool read_as(const struct format *f, const struct json *j, json_ref list,
    struct arena *arena, struct history *out)
{
        bool many = json_type(j, list) == JSON_ARRAY;
        size_t count = many ? json_count(j, list) : 1;
        *out = (struct history){.list = arena_alloc(arena, (count + 1) * sizeof *out->list)};
        json_ref e = many ? json_child(j, list) : list;
        for (; out->list && e != JSON_NONE; e = many ? json_next(j, list, e) : JSON_NONE) {
                struct about about = {0};
                struct message *m = &out->list[out->count];
                struct spelling s;
                if (!f->detect(j, e) || spelling_of(j, e, arena, &s) ||
                    f->describe(s.j, s.msg, arena, &about, NULL) || about.lacks)
                        return false;
                *m = (struct message){.origin = f, .seq = out->count + 1, .raw = json_raw(j, e)};
                if (f->read(s.j, s.msg, arena, m) || !knows(m))
                        return false;
                out->count += m->count > 0;
        }
        return out->list != NULL;
}

static bool same_text(struct str a, struct str b, struct arena *arena)
{
        return str_eq(token_decode(a, arena, NULL), token_decode(b, arena, NULL));
}

static bool same_part(const struct part *a, const struct part *b, struct arena *arena)
{
        if (a->kind != b->kind || a->child_count != b->child_count ||
            a->output_kind != b->output_kind || a->error != b->error || a->ending != b->ending)
                return false;
        if (!same_text(a->text, b->text, arena) || !same_text(a->id, b->id, arena) ||
            !same_text(a->name, b->name, arena) || !same_text(a->output, b->output, arena) ||
            !same_text(a->arguments, b->arguments, arena) ||
            !str_eq(a->media.data, b->media.data) || !str_eq(a->media.url, b->media.url))
                return false;
        for (size_t i = 0; i < a->child_count; i++)
                if (!same_part(&a->children[i], &b->children[i], arena))
                        return false;
        return true;
}

static bool same_history(const struct history *a, const struct history *b, struct arena *arena)
{
        if (a->count != b->count)
                return false;
        for (size_t i = 0; i < a->count; i++) {
                const struct message *m = &a->list[i], *n = &b->list[i];
                if (m->role != n->role || m->count != n->count)
                        return false;
                for (size_t k = 0; k < m->count; k++)
                        if (!same_part(&m->parts[k], &n->parts[k], arena))
                                return false;
        }
        return true;
}

static void add_name(char *names, size_t size, const char *name)
{
        size_t n = strlen(names);
        snprintf(names + n, size - n, "%s%s", n ? ", " : "", name);
}

void format_names(char *names, size_t size)
{
        names[0] = '\0';
        const struct format *f;
        for (size_t i = 0; (f = format_at(i)); i++)
                add_name(names, size, f->name);
}

const struct format *format_choose(
    const struct json *j, json_ref list, struct arena *arena, char *candidates, size_t size)
{
        struct history first = {0}, h;
        struct arena kept, spare; /* at most two readings at once */
        const struct format *f, *found = NULL;
        bool same = true, failed = false;
        candidates[0] = '\0';
        arena_init(&kept);
        arena_init(&spare);
        for (size_t i = 0; (f = format_at(i)); i++) {
                bool reads = read_as(f, j, list, &spare, &h);
                if (reads)
                        add_name(candidates, size, f->name);
                if (reads && found)
                        same = same && same_history(&first, &h, &spare);
                failed = failed || spare.failed;
                if (reads && !found) {
                        found = f;
                        first = h;
                        kept = spare;
                        arena_init(&spare);
                }
                arena_reset(&spare);
        }
        if (failed)
                arena->failed = STENO_ENOMEM;
        arena_release(&kept);
        arena_release(&spare);
        return same ? found : NULL;
}

int format_unknown(const char *name, struct steno_error *err)
{
        char names[200];
        format_names(names, sizeof names);
        return error_set(
            err, STENO_EINVAL, "no format \"%.40s\": use one of %s", name ? name : "", names);
}
