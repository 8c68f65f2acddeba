/*
 * acp_sessions.c - see acp_sessions.h
 */
#include "acp/acp_sessions.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define FILE_NAME "sessions"
#define FILE_MAX (256 * MIB)

static int open_folder(const struct env *env, const char *path, bool create)
{
        const struct fs *fs = env->fs;
        int root = fs->open_root(fs, path, false);
        if (root < 0)
                return root;
        int dir = fs_open_dir(fs, root, "acp", create);
        fs->close(fs, root);
        return dir;
}

static bool is_of(const struct json *j, const struct acp_session_key *key)
{
        return json_is(j, json_get(j, 0, "session"), key->session) &&
               json_is(j, json_get(j, 0, "agent"), key->agent) &&
               json_is(j, json_get(j, 0, "project"), key->project);
}

/* Finds the last line of this session. */
static bool find_in(struct str text, const struct acp_session_key *key, char *conversation)
{
        struct json j;
        bool found = false;
        json_init(&j);
        while (text.n && !found) {
                if (text.p[text.n - 1] == '\n')
                        text.n--;
                const char *nl = text.n ? memrchr(text.p, '\n', text.n) : NULL;
                size_t from = nl ? (size_t)(nl - text.p) + 1 : 0;
                if (json_parse(&j, text.p + from, text.n - from, NULL, NULL) == 0 &&
                    is_of(&j, key)) {
                        char *z = json_dup_string(&j, json_get(&j, 0, "conversation"));
                        if (z && strlen(z) <= ID_MAX) {
                                snprintf(conversation, ID_MAX + 1, "%s", z);
                                found = true;
                        }
                        free(z);
                }
                text.n = from;
        }
        json_release(&j);
        return found;
}

bool acp_sessions_find(const struct env *env, const char *path, const struct acp_session_key *key,
    char conversation[ID_MAX + 1])
{
        const struct fs *fs = env->fs;
        char *text = NULL;
        size_t n = 0;
        int dir = open_folder(env, path, false);
        if (dir < 0)
                return false;
        bool found = fs_slurp(fs, dir, FILE_NAME, FILE_MAX, &text, &n) == 0 &&
                     find_in(str_span(text, n), key, conversation);
        fs->close(fs, dir);
        free(text);
        return found;
}

void acp_sessions_add(const struct env *env, const char *path, const struct acp_session_key *key,
    const char *conversation)
{
        const struct fs *fs = env->fs;
        struct buf line;
        int dir = open_folder(env, path, true);
        if (dir < 0)
                return;
        int fd = fs->open(fs, dir, FILE_NAME, O_WRONLY | O_CREAT | O_APPEND, 0600);
        buf_init(&line, 1 * MIB);
        struct jsonw w = jsonw_to(&line);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "project", key->project);
        jsonw_field_cstr(&w, "agent", key->agent);
        jsonw_field_cstr(&w, "session", key->session);
        jsonw_field_cstr(&w, "conversation", conversation);
        jsonw_object_end(&w);
        buf_putc(&line, '\n');
        if (fd >= 0 && !line.failed)
                fs_write_all(fs, fd, line.p, line.n);
        if (fd >= 0)
                fs->close(fs, fd);
        fs->close(fs, dir);
        buf_release(&line);
}
