/* sizes.c - see sizes.h */
#include "format/sizes.h"

#include <stdio.h>

#include "base/limits.h"
#include "format/writing.h"
#include "model/token.h"

static const char *kind_of(const struct part *p)
{
        return p->kind == PART_IMAGE   ? "image"
               : p->kind == PART_AUDIO ? "sound"
               : p->kind == PART_FILE  ? "file"
                                       : NULL;
}

/* Returns the number of bytes of base64 data; 0: the part only has an address. */
static size_t bytes_of(const struct part *p)
{
        return kind_of(p) ? p->media.data.n / 4 * 3 : 0;
}

/* Returns the id in a ref, which is a string or an object; absent: there is none. */
static struct str ref_id(struct writer *w, struct str ref)
{
        struct str id = {0};
        struct json j;
        json_init(&j);
        if (ref.n && json_parse(&j, ref.p, ref.n, NULL, NULL) == 0)
                id = token_text(
                    &j, json_type(&j, 0) == JSON_OBJECT ? json_get(&j, 0, "id") : 0, w->arena);
        json_release(&j);
        return id;
}

static struct part note_for(struct writer *w, const struct part *result, const struct part *p)
{
        char text[300];
        struct str mime = p->media.mime.p ? token_decode(p->media.mime, w->arena, NULL) : STR("");
        struct str ref = ref_id(w, result->ref);
        int n = snprintf(text, sizeof text,
            "[%s %s%s%.*s of %zu bytes is not shown here: it is larger than a view allows.%s%.*s]",
            p->kind == PART_IMAGE ? "An" : "A", kind_of(p), mime.n ? " of type " : "",
            (int)(mime.n > 60 ? 60 : mime.n), mime.n ? mime.p : "", bytes_of(p),
            ref.n ? " The whole output is " : "", (int)(ref.n > 60 ? 60 : ref.n),
            ref.n ? ref.p : "");
        return (struct part){.kind = PART_TEXT,
            .text = token_make(str_span(text, (size_t)n), w->arena),
            .seq = p->seq};
}

/* Is there enough room for the part? If so, the room is used. */
static bool fits(const struct part *p, size_t *left)
{
        size_t n = bytes_of(p);
        if (n > RESULT_MEDIA_MAX || n > *left)
                return false;
        *left -= n;
        return true;
}

/* Takes the last children first. */
static int fit_result(struct writer *w, struct message *m, size_t at, size_t *left)
{
        struct part *children = NULL;
        for (size_t i = m->parts[at].child_count; i-- > 0;) {
                struct part *result = &m->parts[at];
                if (!bytes_of(&result->children[i]) || fits(&result->children[i], left))
                        continue;
                if (!children) {
                        if (!writing_own_parts(w, m, 0))
                                return STENO_ENOMEM;
                        result = &m->parts[at];
                        children = arena_alloc(w->arena, result->child_count * sizeof *children);
                        if (!children)
                                return STENO_ENOMEM;
                        memcpy(children, result->children, result->child_count * sizeof *children);
                        result->children = children;
                        result->raw = (struct str){0};
                }
                writing_lose(w, m, kind_of(&children[i]), "larger than a view allows");
                children[i] = note_for(w, result, &children[i]);
        }
        return 0;
}

int sizes_fit(struct writer *w, struct history *h)
{
        size_t left = VIEW_MEDIA_MAX;
        for (size_t i = h->count; i-- > 0;) {
                struct message *m = &h->list[i];
                for (size_t k = m->count; k-- > 0;)
                        if (m->parts[k].kind == PART_RESULT && m->parts[k].child_count &&
                            fit_result(w, m, k, &left))
                                return STENO_ENOMEM;
        }
        return w->arena->failed;
}
