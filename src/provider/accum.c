/*
 * accum.c - joins fragments (accum.h).
 */
#include "provider/accum.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/limits.h"

#define ACCUM_MEMBERS_MAX 1024

void accum_init(struct accum *a)
{
        *a = (struct accum){0};
}

void accum_release(struct accum *a)
{
        for (size_t i = 0; i < a->count; i++) {
                buf_release(&a->list[i].key);
                buf_release(&a->list[i].value);
                if (a->list[i].object)
                        accum_release(a->list[i].object);
                free(a->list[i].object);
        }
        free(a->list);
        *a = (struct accum){0};
}

bool accum_is_last(const struct json *j, json_ref obj, json_ref key)
{
        struct str name = json_inner(j, key);
        if (json_count(j, obj) > ACCUM_MEMBERS_MAX)
                return true; /* comparing all pairs would take too long */
        for (json_ref k = json_next_key(j, obj, key); k != JSON_NONE; k = json_next_key(j, obj, k))
                if (str_eq(json_inner(j, k), name))
                        return false;
        return true;
}

struct accum_member *accum_find(const struct accum *a, struct str key)
{
        for (size_t i = 0; i < a->count; i++)
                if (str_eq(buf_str(&a->list[i].key), key))
                        return &a->list[i];
        return NULL;
}

static struct accum_member *add(struct accum *a, struct str key)
{
        if (a->count == ACCUM_MEMBERS_MAX) {
                a->failed = STENO_ELIMIT;
                return NULL;
        }
        if (!grow_room(a->list, a->count, a->cap)) {
                a->failed = STENO_ENOMEM;
                return NULL;
        }
        struct accum_member *m = &a->list[a->count++];
        *m = (struct accum_member){.kind = ACCUM_RAW};
        buf_init(&m->key, MESSAGE_MAX);
        buf_init(&m->value, MESSAGE_MAX);
        buf_put_str(&m->key, key);
        return m;
}

static bool is_nothing(const struct accum_member *m)
{
        return m->kind == ACCUM_RAW && (m->value.n == 0 || str_is(buf_str(&m->value), "null"));
}

static bool is_object(const struct accum_member *m)
{
        return m->kind == ACCUM_OBJECT ||
               (m->kind == ACCUM_RAW && m->value.n && m->value.p[0] == '{');
}

static struct str list_inner(struct str raw)
{
        return str_span(raw.p + 1, raw.n - 2);
}

static void replace(struct accum_member *m, const struct json *j, json_ref value)
{
        buf_clear(&m->value);
        m->text_part = false;
        if (m->object)
                accum_release(m->object);
        switch (json_type(j, value)) {
        case JSON_STRING:
                m->kind = ACCUM_TEXT;
                buf_put_str(&m->value, json_inner(j, value));
                break;
        case JSON_ARRAY:
                m->kind = ACCUM_LIST;
                if (json_count(j, value))
                        buf_put_str(&m->value, list_inner(json_raw(j, value)));
                break;
        default:
                m->kind = ACCUM_RAW;
                buf_put_str(&m->value, json_raw(j, value));
        }
}

static const char TEXT_PART[] = "{\"type\":\"text\",\"text\":\"";

/* Makes a text the first part of a list, because an array of parts follows it. */
static void text_to_list(struct accum_member *m)
{
        struct buf list;
        buf_init(&list, MESSAGE_MAX);
        if (m->value.n) {
                buf_puts(&list, TEXT_PART);
                buf_put_str(&list, buf_str(&m->value));
                buf_puts(&list, "\"}");
        }
        buf_release(&m->value);
        m->value = list;
        m->kind = ACCUM_LIST;
}

static void extend(struct accum_member *m, const struct json *j, json_ref value)
{
        if (json_count(j, value) == 0)
                return;
        if (m->value.n)
                buf_putc(&m->value, ',');
        buf_put_str(&m->value, list_inner(json_raw(j, value)));
}

/* Appends a text behind an array of parts. It becomes a part of its own, which may grow. */
static void extend_by_text(struct accum_member *m, struct str inner)
{
        static const size_t END = sizeof "\"}" - 1;
        if (inner.n == 0)
                return;
        if (m->text_part) {
                m->value.n -= END;
        } else {
                buf_puts(&m->value, m->value.n ? "," : "");
                buf_puts(&m->value, TEXT_PART);
        }
        buf_put_str(&m->value, inner);
        buf_puts(&m->value, "\"}");
        m->text_part = true;
}

static void join_members(struct accum *a, const struct json *j, json_ref obj)
{
        for (json_ref k = json_child(j, obj); k != JSON_NONE; k = json_next_key(j, obj, k)) {
                struct str key = json_inner(j, k);
                if (!accum_is_last(j, obj, k))
                        continue;
                if (str_is(key, "id") || str_is(key, "type") || str_is(key, "index"))
                        accum_set(a, key, j, json_value(j, k));
                else
                        accum_join(a, key, j, json_value(j, k));
        }
}

/* Joins an object to the one before it, member by member. */
static int join_object(struct accum_member *m, const struct json *j, json_ref value)
{
        int rc = 0;
        if (m->kind == ACCUM_RAW) {
                struct json old;
                if (!m->object && !(m->object = calloc(1, sizeof *m->object)))
                        return STENO_ENOMEM;
                json_init(&old);
                rc = json_parse(&old, m->value.p, m->value.n, NULL, NULL);
                if (rc == 0)
                        join_members(m->object, &old, 0);
                json_release(&old);
                buf_clear(&m->value);
                m->kind = ACCUM_OBJECT;
        }
        join_members(m->object, j, value);
        return rc ? rc : m->object->failed;
}

static struct accum_member *done(struct accum *a, struct accum_member *m)
{
        int failed = m->key.failed ? m->key.failed : m->value.failed;
        if (!failed && m->object)
                failed = m->object->failed;
        if (!failed)
                return m;
        a->failed = failed;
        return NULL;
}

static struct accum_member *find_or_add(struct accum *a, struct str key)
{
        struct accum_member *m = accum_find(a, key);
        return m ? m : add(a, key);
}

struct accum_member *accum_join(
    struct accum *a, struct str key, const struct json *j, json_ref value)
{
        struct accum_member *m = find_or_add(a, key);
        if (!m)
                return NULL;
        enum json_type type = json_type(j, value);
        if (type == JSON_NULL && (m->value.n || m->kind == ACCUM_OBJECT))
                return m;
        if (is_nothing(m)) {
                replace(m, j, value);
        } else if (m->kind == ACCUM_TEXT && type == JSON_STRING) {
                buf_put_str(&m->value, json_inner(j, value));
        } else if (type == JSON_ARRAY && (m->kind == ACCUM_TEXT || m->kind == ACCUM_LIST)) {
                if (m->kind == ACCUM_TEXT)
                        text_to_list(m);
                extend(m, j, value);
                m->text_part = m->text_part && json_count(j, value) == 0;
        } else if (type == JSON_STRING && m->kind == ACCUM_LIST) {
                extend_by_text(m, json_inner(j, value));
        } else if (type == JSON_OBJECT && is_object(m)) {
                a->failed = join_object(m, j, value);
        } else if (type != JSON_NULL) {
                a->replaced += m->kind != ACCUM_RAW || type >= JSON_STRING || is_object(m);
                replace(m, j, value);
        }
        return done(a, m);
}

struct accum_member *accum_set(
    struct accum *a, struct str key, const struct json *j, json_ref value)
{
        struct accum_member *m = find_or_add(a, key);
        if (!m)
                return NULL;
        if (is_nothing(m) || json_type(j, value) != JSON_NULL)
                replace(m, j, value);
        return done(a, m);
}

struct accum_member *accum_set_text(struct accum *a, struct str key, struct str text)
{
        struct accum_member *m = accum_find(a, key);
        if (!m)
                m = add(a, key);
        if (!m)
                return NULL;
        m->kind = ACCUM_TEXT;
        buf_clear(&m->value);
        json_put_escaped(&m->value, text);
        return done(a, m);
}

/* Returns how much can be decoded without splitting an escaped surrogate pair. */
static size_t decodable(struct str raw)
{
        if (raw.n < 6 || raw.p[raw.n - 6] != '\\' || raw.p[raw.n - 5] != 'u')
                return raw.n;
        const char *h = raw.p + raw.n - 4;
        bool high = (h[0] == 'd' || h[0] == 'D') && h[1] && strchr("89abAB", h[1]);
        size_t slashes = 0;
        while (slashes < raw.n - 5 && raw.p[raw.n - 6 - slashes] == '\\')
                slashes++;
        return high && slashes % 2 == 1 ? raw.n - 6 : raw.n;
}

int accum_tell(struct accum_member *m, const struct reply_hooks *hooks, enum reply_piece kind)
{
        if (!m || m->kind != ACCUM_TEXT || !hooks->piece)
                return 0;
        size_t end = decodable(buf_str(&m->value));
        if (end <= m->told)
                return 0;
        struct buf text;
        buf_init(&text, MESSAGE_MAX);
        json_unescape(str_span(m->value.p + m->told, end - m->told), &text, NULL);
        m->told = end;
        int rc = text.failed ? text.failed : hooks->piece(hooks->ctx, kind, buf_str(&text));
        buf_release(&text);
        return rc;
}

char *accum_dup(const struct accum *a, const char *key)
{
        struct accum_member *m = accum_find(a, str_of(key));
        struct buf b;
        buf_init(&b, MESSAGE_MAX);
        if (m && m->kind == ACCUM_TEXT)
                json_unescape(buf_str(&m->value), &b, NULL);
        if (b.n && memchr(b.p, '\0', b.n)) /* a NUL would cut it short */
                buf_clear(&b);
        char *z = buf_take(&b, NULL);
        buf_release(&b);
        return z;
}

void accum_put_value(const struct accum_member *m, struct buf *out)
{
        static const char *const open[] = {"", "\"", "[", "{"};
        static const char *const shut[] = {"", "\"", "]", "}"};
        buf_puts(out, open[m->kind]);
        if (m->kind == ACCUM_OBJECT)
                accum_put_members(m->object, out, false);
        else
                buf_put_str(out, buf_str(&m->value));
        buf_puts(out, shut[m->kind]);
}

void accum_put_member(const struct accum_member *m, struct buf *out)
{
        buf_putc(out, '"');
        buf_put_str(out, buf_str(&m->key));
        buf_puts(out, "\":");
        accum_put_value(m, out);
}

void accum_put_members(const struct accum *a, struct buf *out, bool comma)
{
        for (size_t i = 0; i < a->count; i++) {
                if (comma)
                        buf_putc(out, ',');
                accum_put_member(&a->list[i], out);
                comma = true;
        }
}
