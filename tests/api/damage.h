/*
 * damage.h - messages with files of their own, ways to damage these files, and what readers then
 * get.
 */
#ifndef TEST_STENO_DAMAGE_H
#define TEST_STENO_DAMAGE_H

#include <dirent.h>
#include <unistd.h>

#include "api/rig.h"

#define PARTS "artifacts/parts"
#define TOOL "artifacts/tool"

static inline void put_path(struct rig *r, const char *below, char to[600])
{
        snprintf(to, 600, "%s/projects/default/conversations/c/%s", r->scratch.path, below);
}

/* The only file of a folder, "" if there is none. */
static inline void only_file(struct rig *r, const char *folder, char to[600])
{
        char path[600];
        struct dirent *e;
        to[0] = '\0';
        put_path(r, folder, path);
        DIR *d = opendir(path);
        assert_non_null(d);
        while ((e = readdir(d))) {
                if (e->d_name[0] == '.')
                        continue;
                assert_int_equal(to[0], '\0');
                assert_true(snprintf(to, 600, "%s/%s", path, e->d_name) < 600);
        }
        closedir(d);
}

static inline void change_byte(struct rig *r, const char *folder, long at, char to)
{
        char path[600];
        only_file(r, folder, path);
        FILE *f = fopen(path, "r+");
        assert_non_null(f);
        assert_int_equal(fseek(f, at, SEEK_SET), 0);
        assert_int_equal(fputc(to, f), (unsigned char)to);
        assert_int_equal(fclose(f), 0);
}

static inline void cut(struct rig *r, const char *folder, off_t size)
{
        char path[600];
        only_file(r, folder, path);
        assert_int_equal(truncate(path, size), 0);
}

/* How many copies there are in quarantine. */
static inline int set_aside(struct rig *r)
{
        char path[600];
        struct dirent *e;
        int n = 0;
        snprintf(path, sizeof path, "%s/quarantine", r->scratch.path);
        DIR *d = opendir(path);
        while (d && (e = readdir(d)))
                n += strstr(e->d_name, ".bytes") != NULL;
        if (d)
                closedir(d);
        return n;
}

static inline void append(struct rig *r, const struct buf *message)
{
        OK(steno_append(r->conv, message->p, message->n, NULL, NULL, &err));
}

/* A user's message of one large string. */
static inline void large_message(struct buf *m, const char *id)
{
        buf_init(m, 0);
        buf_printf(m, "{\"id\":\"%s\",\"role\":\"user\",\"content\":\"", id);
        for (int i = 0; i < 100000; i++)
                buf_putc(m, 'U');
        buf_puts(m, "\"}");
}

/* A tool's result that becomes an artifact, for the call "k". */
static inline void large_result(struct buf *m, const char *id)
{
        buf_init(m, 0);
        buf_printf(m, "{\"id\":\"%s\",\"role\":\"tool\",\"tool_call_id\":\"k\",\"content\":\"", id);
        for (int i = 0; i < 3000; i++)
                buf_printf(m, "line %d of it\\n", i);
        buf_puts(m, "\"}");
}

/* The view has `count` messages, and its report names `damaged` as damaged. */
static inline void sees(struct rig *r, int outputs, size_t count, const char *damaged)
{
        struct steno_view_options opt = {
            .size = sizeof opt, .format = "openai", .outputs = outputs};
        char want[64], *report = NULL;
        struct buf view;
        struct json j;
        buf_init(&view, 0);
        json_init(&j);
        OK(steno_view(r->conv, &opt, rig_gather, &view, &report, &err));
        OK(json_parse(&j, view.p, view.n, NULL, &err));
        assert_int_equal(json_count(&j, 0), count);
        snprintf(want, sizeof want, "\"damaged\":%s", damaged);
        if (!strstr(report, want))
                fail_msg("%s is not in %s", want, report);
        json_release(&j);
        buf_release(&view);
        steno_free(report);
}

static inline int take_message(void *ctx, const struct steno_record *r)
{
        char *json = NULL;
        int rc = steno_record_message(r, &json, NULL, NULL);
        steno_free(json);
        *(int *)ctx = rc;
        return 0;
}

/* What the reader of the record with this id gets. */
static inline int read_record(struct rig *r, const char *id)
{
        int rc = 0;
        OK(steno_read_id(r->conv, id, take_message, &rc, &err));
        return rc;
}

static inline void ref_of(struct rig *r, char to[64])
{
        struct json j;
        struct buf id;
        char *list = rig_context(r, "list", "{}");
        rig_parse(&j, list);
        buf_init(&id, 0);
        json_string(&j, json_get(&j, json_at(&j, json_get(&j, 0, "items"), 0), "id"), &id, NULL);
        snprintf(to, 64, "%s", buf_cstr(&id));
        buf_release(&id);
        json_release(&j);
        steno_free(list);
}

static inline void lose(struct rig *r, const char *folder)
{
        char path[600];
        only_file(r, folder, path);
        assert_int_equal(remove(path), 0);
}

#endif
