/*
 * mcp_rig.h - one MCP server with its tools in a set, and functions with which tests use them.
 */
#ifndef TESTS_LOOP_MCP_RIG_H
#define TESTS_LOOP_MCP_RIG_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/fake_call.h"
#include "exec/exec.h"
#include "mcp/mcp_tools.h"

#ifndef TESTS_DIR
#define TESTS_DIR "tests"
#endif

extern char **environ;

/* One server and its tools. */
struct rig {
        char *args[8];
        char *env[4];
        char *headers[2];
        struct mcp_server server;
        struct mcp_tools_options opt;
        struct steno_tools set;
        struct buf warnings;
        char marks[64]; /* a directory for files that the server leaves */
        char mark_env[96];
};

static inline void rig_init(struct rig *r, const char *name, const char *command)
{
        memset(r, 0, sizeof(*r));
        strcpy(r->marks, "/tmp/steno-mcp-XXXXXX");
        assert_non_null(mkdtemp(r->marks));
        snprintf(r->mark_env, sizeof(r->mark_env), "CANCELLED=%s/cancelled", r->marks);
        r->env[0] = r->mark_env;
        r->server.name = (char *)name;
        r->server.command = (char *)command;
        r->server.args = r->args;
        r->server.env = r->env;
        r->opt.servers = &r->server;
        r->opt.count = 1;
        r->opt.host.env = (const char *const *)environ;
        buf_init(&r->warnings, MIB);
        toolset_init(&r->set);
}

static inline void rig_start(struct rig *r)
{
        struct steno_error err = {0};

        if (mcp_tools_add(&r->set, &r->opt, &r->warnings, &err) != 0)
                fail_msg("%s", err.msg);
}

/* The fake server in one of its modes. */
static inline void rig_fake(struct rig *r, const char *mode)
{
        rig_init(r, "fake", "python3");
        r->args[0] = TESTS_DIR "/mcp/servers/fake.py";
        r->args[1] = (char *)mode;
        rig_start(r);
        if (r->warnings.n)
                fail_msg("%s", buf_cstr(&r->warnings));
}

static inline void rig_release(struct rig *r)
{
        char command[128];

        toolset_release(&r->set);
        buf_release(&r->warnings);
        snprintf(command, sizeof(command), "rm -rf '%s'", r->marks);
        assert_int_equal(system(command), 0);
}

static inline bool alive(const char *mark)
{
        DIR *proc = opendir("/proc");
        struct dirent *e;
        bool found = false;

        while (!found && (e = readdir(proc))) {
                char path[300], line[4096];
                snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
                int fd = open(path, O_RDONLY);
                if (fd < 0)
                        continue;
                ssize_t n = read(fd, line, sizeof(line));
                close(fd);
                found = n > 0 && memmem(line, (size_t)n, mark, strlen(mark));
        }
        closedir(proc);
        return found;
}

/* Makes one call; the text of its result must be `text`. */
static inline void expect(const struct rig *r, const char *tool, const char *args, const char *text)
{
        struct fake_call f;

        fake_init(&f);
        int rc = fake_run(&f, &r->set, tool, args);
        if (rc != 0)
                fail_msg("%s: %d %s", tool, rc, f.err.msg);
        assert_false(f.result.is_error);
        assert_string_equal(fake_text(&f), text);
        fake_release(&f);
}

/* A server in a process of its own, reached over HTTP. It prints its port and ends with its
 * stdin. */
struct web {
        struct exec_process process;
        char **env;
        int in, out;
        char url[64];
};

static inline void web_start(struct web *w, const char *mode)
{
        const char *argv[] = {"python3", TESTS_DIR "/mcp/servers/fake_http.py", mode, NULL};
        int in[2], out[2];
        char port[16] = "";

        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        exec_env((const char *const *)environ, NULL, NULL, &w->env, NULL);
        struct exec_spec spec = {.argv = argv,
            .env = (const char *const *)w->env,
            .in = in[0],
            .out = out[1],
            .err = -1};
        assert_int_equal(exec_spawn(&spec, &w->process, NULL), 0);
        close(in[0]);
        close(out[1]);
        w->in = in[1];
        w->out = out[0];
        assert_true(read(w->out, port, sizeof(port) - 1) > 1);
        snprintf(w->url, sizeof(w->url), "http://127.0.0.1:%d/mcp", atoi(port));
}

static inline void web_end(struct web *w)
{
        close(w->in);
        close(w->out);
        exec_finish(&w->process);
        exec_env_free(w->env);
}

#endif
