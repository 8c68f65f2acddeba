/*
 * claude.c - Claude Code: a file of lines for each session, and one for each subagent.
 *
 * The `message` of a line is Anthropic's, kept as it stands: pieces of one response have the same
 * message id, and views join them by it. A file becomes a conversation. The lines of a side chain
 * in it become a conversation of their own.
 */
#include "foreign/foreign_kinds.h"
#include "foreign/made.h"

#include <string.h>

#include "base/error.h"

static const struct foreign_place PLACES[] = {
    {"CLAUDE_CONFIG_DIR", "projects", ".claude/projects"},
    {NULL, NULL, NULL},
};

struct claude {
        bool side; /* the sink is now receiving a side chain */
};

static bool claude_is(const struct foreign_probe *p)
{
        const struct json *j = p->first;
        json_ref message = json_get(j, 0, "message");
        if (json_get(j, message, "parts") != JSON_NONE)
                return false; /* Qwen Code */
        if (json_get(j, 0, "sessionId") != JSON_NONE && json_get(j, 0, "uuid") != JSON_NONE &&
            json_get(j, 0, "parentUuid") != JSON_NONE &&
            json_get(j, 0, "provenance") == JSON_NONE &&
            (message != JSON_NONE || json_get(j, 0, "isSidechain") != JSON_NONE))
                return true;
        return (json_is(j, json_get(j, 0, "type"), "summary") &&
                   json_get(j, 0, "leafUuid") != JSON_NONE) ||
               json_is(j, json_get(j, 0, "type"), "file-history-snapshot") ||
               json_is(j, json_get(j, 0, "type"), "queue-operation") ||
               json_is(j, json_get(j, 0, "type"), "ai-title");
}

/* The path is <session>/subagents/agent-<id>.jsonl, perhaps with folders in between. */
static int claude_identify(struct foreign *t, const struct foreign_probe *p)
{
        const char *sub = strstr(p->path, "/subagents/");
        if (!sub)
                return 0;
        const char *start = sub;
        while (start > p->path && start[-1] != '/')
                start--;
        t->session.parent = str_span(start, (size_t)(sub - start));
        t->session.origin = "subagent";
        buf_clear(&t->a);
        buf_put_str(&t->a, t->session.parent);
        buf_putc(&t->a, '-');
        buf_put_str(&t->a, t->session.id);
        t->session.id = foreign_keep(t, buf_str(&t->a));
        return 0;
}

static void learn(struct foreign *t)
{
        const struct json *j = &t->j;
        struct foreign_session *s = &t->session;
        json_ref model = json_get(j, json_get(j, 0, "message"), "model");
        foreign_learn(t, &s->version, j, json_get(j, 0, "version"));
        foreign_learn(t, &s->cwd, j, json_get(j, 0, "cwd"));
        if (!json_is(j, model, "<synthetic>"))
                foreign_learn(t, &s->model, j, model);
}

/* Tells the sink whether the next items belong to the file's own session or to a side chain in
 * it. */
static int switch_chain(struct foreign *t, bool side)
{
        struct claude *c = t->state;
        if (side == c->side)
                return 0;
        c->side = side;
        if (!side)
                return t->sink.begin(t->sink.ctx, &t->session);
        struct foreign_session s = {.origin = "sidechain", .parent = t->session.id};
        buf_clear(&t->a);
        buf_put_str(&t->a, t->session.id);
        buf_puts(&t->a, "-side");
        s.id = buf_str(&t->a);
        return t->a.failed ? error_nomem(t->err) : t->sink.begin(t->sink.ctx, &s);
}

/* Reads the file with the whole output of a result, which must be below this session's own
 * folder. */
static bool find_whole(struct foreign *t, json_ref result, struct buf *out)
{
        static const char SAVED[] = "Full output saved to: ";
        const struct json *j = &t->j;
        json_ref named = json_get(j, json_get(j, 0, "toolUseResult"), "persistedOutputPath");
        buf_clear(&t->b);
        if (!json_string(j, named, &t->b, NULL)) {
                struct buf text;
                buf_init(&text, 0);
                json_ref content = json_get(j, result, "content");
                if (!json_string(j, content, &text, NULL))
                        json_string(j, json_get(j, json_child(j, content), "text"), &text, NULL);
                const char *at = text.n && memmem(text.p, text.n, "<persisted-output>", 18)
                                     ? memmem(text.p, text.n, SAVED, sizeof SAVED - 1)
                                     : NULL;
                for (at = at ? at + sizeof SAVED - 1 : NULL;
                     at && at < text.p + text.n && *at != '\n' && *at != '<'; at++)
                        buf_putc(&t->b, *at);
                buf_release(&text);
        }
        while (t->b.n && (t->b.p[t->b.n - 1] == ' ' || t->b.p[t->b.n - 1] == '\r'))
                t->b.n--;
        if (!t->b.n)
                return false;
        struct str path = buf_str(&t->b);
        const char *marker = "/tool-results/";
        size_t n = strlen(marker);
        for (size_t i = path.n; i-- > 0;) {
                if (path.n - i <= n || memcmp(path.p + i, marker, n) != 0)
                        continue;
                struct str stem = foreign_stem(t->path, ".jsonl");
                buf_clear(&t->c);
                buf_put_str(&t->c, stem);
                buf_put(&t->c, path.p + i, path.n - i);
                return foreign_side(t, 0, buf_str(&t->c), out);
        }
        return false;
}

static int take_message(struct foreign *t, struct str id, struct str at)
{
        const struct json *j = &t->j;
        json_ref message = json_get(j, 0, "message"), content = json_get(j, message, "content");
        json_ref only = JSON_NONE;
        struct foreign_item item = {
            .id = id, .at = at, .format = "anthropic", .json = json_raw(j, message)};
        bool list = json_type(j, content) == JSON_ARRAY;
        for (json_ref b = list ? json_child(j, content) : JSON_NONE; b != JSON_NONE;
             b = json_next(j, content, b)) {
                json_ref type = json_get(j, b, "type");
                item.calls += json_is(j, type, "tool_use");
                item.results += json_is(j, type, "tool_result");
                only = b;
        }
        if (item.results != 1 || json_count(j, content) != 1 || !find_whole(t, only, &t->a))
                return foreign_item(t, &item);
        struct made_result r =
            made_result_of(foreign_text(t, j, json_get(j, only, "tool_use_id")), STR(""));
        json_ref said = json_get(j, only, "content");
        buf_clear(&t->c);
        if (!json_string(j, said, &t->c, NULL))
                json_string(j, json_get(j, json_child(j, said), "text"), &t->c, NULL);
        r.text = buf_str(&t->a);
        r.seen = buf_str(&t->c);
        r.error = json_bool(j, json_get(j, only, "is_error"), false);
        return made_put_result(t, &r, id, at, t->raw);
}

static int claude_line(struct foreign *t)
{
        static const char *const KNOWN[] = {"progress", "queue-operation", "file-history-snapshot",
            "attachment", "ai-title", "custom-title", "last-prompt", "summary", "system", NULL};
        const struct json *j = &t->j;
        json_ref type = json_get(j, 0, "type");
        struct str at = json_inner(j, json_get(j, 0, "timestamp"));
        struct str id = foreign_text(t, j, json_get(j, 0, "uuid"));
        bool sub = t->session.origin != NULL; /* a subagent has a file of its own */
        learn(t);
        int rc = switch_chain(t, !sub && json_bool(j, json_get(j, 0, "isSidechain"), false));
        if (rc)
                return rc;
        if ((json_is(j, type, "user") || json_is(j, type, "assistant")) &&
            json_type(j, json_get(j, 0, "message")) == JSON_OBJECT)
                return take_message(t, id, at);
        json_ref title = json_get(j, 0, json_is(j, type, "summary") ? "summary" : "title");
        if (json_type(j, title) != JSON_STRING)
                title = json_get(j, 0, "aiTitle");
        if (json_type(j, title) == JSON_STRING)
                t->session.title = foreign_keep(t, foreign_text(t, j, title));
        if (json_is(j, type, "system") && json_is(j, json_get(j, 0, "subtype"), "compact_boundary"))
                return foreign_other(t, id, at, t->raw);
        for (size_t i = 0; KNOWN[i]; i++) {
                if (json_is(j, type, KNOWN[i])) {
                        foreign_skip(t);
                        return 0;
                }
        }
        return foreign_other(t, id, at, t->raw);
}

const struct foreign_kind foreign_claude = {
    .name = "claude",
    .shape = FOREIGN_LINES,
    .state_size = sizeof(struct claude),
    .places = PLACES,
    .is = claude_is,
    .identify = claude_identify,
    .line = claude_line,
};
