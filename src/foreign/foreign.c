/* foreign.c - the table of kinds, and what they share (foreign.h). */
#include "foreign/foreign.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/limits.h"
#include "foreign/foreign_kinds.h"

/* foreign_find() takes the first kind that recognises the source. So the kinds with strict checks
 * come before those that accept any list of messages. */
static const struct foreign_kind *const KINDS[] = {
    &foreign_codex,
    &foreign_claude,
    &foreign_qwen,
    &foreign_gemini,
    &foreign_gemini_old,
    &foreign_pi,
    &foreign_neovate,
    &foreign_goose,
    &foreign_goose_lines,
    &foreign_opencode,
    &foreign_opencode_export,
    &foreign_opencode_folder,
    &foreign_cline,
    &foreign_roo,
    &foreign_continue,
    &foreign_crewagent,
    &foreign_deepchat,
    &foreign_deepchat_export,
    &foreign_acontext,
    &foreign_sharegpt,
    &foreign_langchain,
    &foreign_list,
};

const struct foreign_kind *foreign_at(size_t i)
{
        return i < sizeof KINDS / sizeof *KINDS ? KINDS[i] : NULL;
}

const struct foreign_kind *foreign_find(const struct foreign_probe *p)
{
        for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
                bool fits = KINDS[i]->shape == FOREIGN_DATABASE ? p->db != NULL
                            : KINDS[i]->shape == FOREIGN_LINES  ? p->first != NULL
                                                                : p->whole != NULL;
                if (fits && KINDS[i]->is(p))
                        return KINDS[i];
        }
        return NULL;
}

/* ---- a reading ---- */

int foreign_open(struct foreign *t, const struct foreign_kind *kind, const struct foreign_probe *p,
    const struct foreign_sink *sink, struct steno_error *err)
{
        *t = (struct foreign){.kind = kind,
            .path = p->path,
            .alone = p->alone,
            .sink = *sink,
            .db = p->db,
            .err = err};
        arena_init(&t->arena);
        arena_init(&t->line);
        json_init(&t->j);
        buf_init(&t->out, 0);
        buf_init(&t->a, 0);
        buf_init(&t->b, 0);
        buf_init(&t->c, 0);
        t->session.id = foreign_stem(p->path, strrchr(p->path, '.'));
        int rc = 0;
        if (kind->state_size) {
                t->state = calloc(1, kind->state_size);
                rc = t->state ? 0 : error_nomem(err);
        }
        if (rc == 0 && kind->identify)
                rc = kind->identify(t, p);
        return rc ? rc : t->arena.failed ? error_nomem(err) : 0;
}

void foreign_close(struct foreign *t)
{
        if (t->kind && t->kind->release && t->state)
                t->kind->release(t);
        free(t->state);
        buf_release(&t->out);
        buf_release(&t->a);
        buf_release(&t->b);
        buf_release(&t->c);
        json_release(&t->j);
        arena_release(&t->arena);
        arena_release(&t->line);
        t->kind = NULL;
}

/* Hands out a line that cannot be read as an entry whose content is the text of the line. */
static int keep_damaged(struct foreign *t, struct str line)
{
        buf_clear(&t->a);
        json_put_string(&t->a, line);
        t->sink.damaged(t->sink.ctx);
        return foreign_other(t, STR(""), STR(""), buf_str(&t->a));
}

int foreign_line(struct foreign *t, struct str line)
{
        while (line.n && (line.p[line.n - 1] == '\r' || line.p[line.n - 1] == ' '))
                line.n--;
        if (!line.n)
                return 0;
        arena_reset(&t->line);
        int rc = json_parse(&t->j, line.p, line.n, NULL, NULL);
        if (rc == STENO_ENOMEM)
                return error_nomem(t->err);
        if (rc || json_type(&t->j, 0) != JSON_OBJECT)
                return keep_damaged(t, line);
        t->raw = line;
        return t->kind->line(t);
}

int foreign_end(struct foreign *t)
{
        return t->kind->end ? t->kind->end(t) : 0;
}

int foreign_read(struct foreign *t, struct str text)
{
        int rc = 0;
        if (t->kind->shape == FOREIGN_DOCUMENT)
                rc = json_parse(&t->j, text.p, text.n, NULL, t->err);
        t->raw = text;
        return rc ? rc : t->kind->read(t);
}

/* ---- for kinds ---- */

struct str foreign_keep(struct foreign *t, struct str s)
{
        return arena_dup(&t->arena, s);
}

struct str foreign_text(struct foreign *t, const struct json *j, json_ref v)
{
        struct buf b;
        buf_init(&b, 0);
        struct str s = STR("");
        if (json_string(j, v, &b, NULL) && !b.failed)
                s = arena_dup(&t->line, buf_str(&b));
        if (b.failed)
                t->line.failed = STENO_ENOMEM;
        buf_release(&b);
        return s;
}

void foreign_learn(struct foreign *t, struct str *to, const struct json *j, json_ref v)
{
        if (!to->n && json_inner(j, v).n)
                *to = foreign_keep(t, foreign_text(t, j, v));
}

struct str foreign_join(struct foreign *t, struct str a, const char *b)
{
        size_t n = strlen(b);
        char *p = arena_alloc(&t->line, a.n + n + 1);
        if (!p)
                return STR("");
        memcpy(p, a.p ? a.p : "", a.n);
        memcpy(p + a.n, b, n);
        return str_span(p, a.n + n);
}

struct str foreign_stem(const char *path, const char *suffix)
{
        const char *slash = strrchr(path, '/');
        struct str name = str_of(slash ? slash + 1 : path);
        size_t n = suffix ? strlen(suffix) : 0;
        if (n && n < name.n && memcmp(name.p + name.n - n, suffix, n) == 0)
                name.n -= n;
        return name;
}

int foreign_item(struct foreign *t, const struct foreign_item *item)
{
        if (t->out.failed || t->a.failed || t->b.failed || t->c.failed || t->line.failed ||
            t->arena.failed)
                return error_nomem(t->err);
        /* If a kind produced no message, the entry that it was made from is kept instead. */
        if (!item->json.n || item->json.p[0] != '{')
                return t->kind->shape == FOREIGN_LINES
                           ? foreign_other(t, item->id, item->at, t->raw)
                           : foreign_other(
                                 t, item->id, item->at, item->json.n ? item->json : STR("null"));
        return t->sink.item(t->sink.ctx, item);
}

int foreign_other(struct foreign *t, struct str id, struct str at, struct str json)
{
        struct jsonw w = jsonw_to(&t->out);
        buf_clear(&t->out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "system");
        jsonw_field_cstr(&w, "content", "");
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_field_raw(&w, "entry", json);
        jsonw_object_end(&w);
        struct foreign_item item = {.id = id,
            .at = at,
            .format = "openai",
            .json = buf_str(&t->out),
            .entry = json,
            .other = true};
        return foreign_item(t, &item);
}

int foreign_instructions(struct foreign *t, struct str at, const struct json *j, json_ref text)
{
        struct jsonw w = jsonw_to(&t->out);
        if (json_inner(j, text).n == 0)
                return 0;
        buf_clear(&t->out);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "system");
        jsonw_field_cstr(&w, "content", "");
        jsonw_field_cstr(&w, "partType", "request");
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_key(&w, "request");
        jsonw_object(&w);
        jsonw_field_raw(&w, "instructions", json_raw(j, text));
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        struct foreign_item item = {.id = STR("instructions"),
            .at = at,
            .format = "openai",
            .json = buf_str(&t->out),
            .entry = json_raw(j, text),
            .beside = true};
        return foreign_item(t, &item);
}

void foreign_skip(struct foreign *t)
{
        t->sink.skipped(t->sink.ctx);
}

/* Is it a path of plain names that cannot leave its folder? */
static bool is_tail(struct str s)
{
        size_t start = 0;
        if (!s.n || s.n > 512 || s.p[0] == '/' || memchr(s.p, '\0', s.n))
                return false;
        for (size_t i = 0; i <= s.n; i++) {
                if (i < s.n && s.p[i] != '/')
                        continue;
                struct str name = str_span(s.p + start, i - start);
                if (!name.n || str_is(name, ".") || str_is(name, ".."))
                        return false;
                start = i + 1;
        }
        return true;
}

static bool read_below(const char *folder, struct str tail, struct buf *out)
{
        const struct fs *fs = fs_real();
        char path[513];
        struct stat st;
        char *text = NULL;
        size_t n = 0;
        bool found = false;
        snprintf(path, sizeof path, "%.*s", (int)tail.n, tail.p);
        int dir = fs->open_root(fs, folder, false);
        if (dir < 0)
                return false;
        if (fs->stat(fs, dir, path, &st) == 0 && S_ISREG(st.st_mode) &&
            fs_slurp(fs, dir, path, MESSAGE_MAX / 2, &text, &n) == 0) {
                buf_clear(out);
                buf_put(out, text, n);
                found = !out->failed;
        }
        free(text);
        fs->close(fs, dir);
        return found;
}

/* Returns the folder `up` levels above the source's own folder. The caller frees it. NULL: none. */
static char *folder_above(const struct foreign *t, unsigned up)
{
        char *folder = t->alone ? NULL : strdup(t->path);
        for (unsigned i = 0; folder && i <= up; i++) {
                char *slash = strrchr(folder, '/');
                if (!slash) {
                        free(folder);
                        return NULL;
                }
                *slash = '\0';
        }
        if (folder && !*folder)
                memcpy(folder, "/", 2); /* the root folder: there was a slash */
        return folder;
}

bool foreign_side(struct foreign *t, unsigned up, struct str tail, struct buf *out)
{
        char *folder = is_tail(tail) ? folder_above(t, up) : NULL;
        bool found = folder && read_below(folder, tail, out);
        free(folder);
        return found;
}

struct listing {
        char **names;
        size_t count;
        size_t cap;
};

static int note_name(void *ctx, const char *name, unsigned char type)
{
        struct listing *l = ctx;
        (void)type;
        if (!grow_room(l->names, l->count, l->cap))
                return STENO_ENOMEM;
        l->names[l->count] = strdup(name);
        return l->names[l->count] ? (l->count++, 0) : STENO_ENOMEM;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

int foreign_side_list(
    struct foreign *t, unsigned up, const char *tail, foreign_name_fn each, void *ctx)
{
        const struct fs *fs = fs_real();
        struct listing l = {0};
        char *folder = is_tail(str_of(tail)) ? folder_above(t, up) : NULL;
        int top = folder ? fs->open_root(fs, folder, false) : -1;
        int dir = top < 0 ? top : fs->open(fs, top, tail, O_RDONLY | O_DIRECTORY, 0);
        int rc = dir < 0 ? 0 : fs->list(fs, dir, note_name, &l);
        if (dir >= 0)
                fs->close(fs, dir);
        if (top >= 0)
                fs->close(fs, top);
        free(folder);
        if (rc)
                rc = rc == STENO_ENOMEM ? error_nomem(t->err) : 0; /* an unreadable one is empty */
        if (l.count)
                qsort(l.names, l.count, sizeof *l.names, by_name);
        for (size_t i = 0; i < l.count; i++) {
                if (rc == 0)
                        rc = each(ctx, l.names[i]);
                free(l.names[i]);
        }
        free(l.names);
        return rc;
}

bool foreign_side_named(
    struct foreign *t, unsigned up, const char *marker, struct str path, struct buf *out)
{
        size_t n = strlen(marker);
        for (size_t i = path.n; i-- > 0;)
                if (path.n - i > n && memcmp(path.p + i, marker, n) == 0)
                        return foreign_side(t, up, str_span(path.p + i + 1, path.n - i - 1), out);
        return false;
}

bool foreign_temporary(struct foreign *t, const char *name, struct buf *out)
{
        const char *folder = getenv("TMPDIR");
        return !t->alone && is_tail(str_of(name)) &&
               read_below(folder && *folder ? folder : "/tmp", str_of(name), out);
}

struct str foreign_time(const struct json *j, json_ref v, char *out)
{
        int64_t ms;
        double d;
        if (!json_i64(j, v, &ms)) {
                if (!json_double(j, v, &d) || d < 0 || d > 1e15)
                        return STR("");
                ms = (int64_t)d;
        }
        time_format(ms, out);
        return str_of(out);
}
