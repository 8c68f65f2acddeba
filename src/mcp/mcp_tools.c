/*
 * mcp_tools.c - starting servers side by side, offering their tools, and carrying calls.
 */
#include "mcp/mcp_tools.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "exec/exec_modes.h"
#include "mcp/mcp_content.h"
#include "mcp/mcp_name.h"
#include "mcp/mcp_param.h"

/* ---- a call ---- */

static void on_progress(void *ctx, double done, double total, struct str text)
{
        struct steno_tool_call *call = ctx;
        char words[1024];
        size_t n = text_floor(text.p, text.n, sizeof(words) - 1);

        if (!(done >= 0) || !(total >= 0) || done > 1e15 || total > 1e15)
                done = total = 0;
        /* Steps are counted in whole numbers: fractions become thousandths. */
        if (done != (double)(uint64_t)done || total != (double)(uint64_t)total) {
                done *= 1000;
                total *= 1000;
        }
        if (n)
                memcpy(words, text.p, n);
        words[n] = '\0';
        tool_call_step(call, n ? words : NULL, (uint64_t)done, (uint64_t)total, NULL);
}

static int to_call(void *ctx, const void *p, size_t n)
{
        return tool_call_write(ctx, p, n, NULL);
}

static int call_server(const struct tool *self, struct steno_tool_call *call,
    struct tool_result *result, struct steno_error *err)
{
        struct mcp_call m = {.tool = self->raw_name,
            .args = call->args,
            .schema = self->schema,
            .deadline = call->deadline,
            .stop = call->stop,
            .progress = on_progress,
            .piece = to_call,
            .ctx = call};
        struct steno_error mine = {0};
        struct json j;
        char *text;

        if (!err)
                err = &mine;
        int rc = mcp_client_call(self->ctx, &m, &text, &j, err);
        exec_modes_tell(call, mcp_client_put_modes_back(self->ctx));
        /* The server's own refusal is something the model can act on. */
        if (rc == STENO_EPROTO) {
                result->is_error = true;
                return tool_call_puts(call, err->msg, err);
        }
        if (rc < 0)
                return rc;
        rc =
            mcp_content_write(&j, json_get(&j, 0, "result"), to_call, call, &result->is_error, err);
        json_release(&j);
        free(text);
        return rc;
}

/* ---- starting ---- */

struct opening {
        const struct mcp_tools_options *opt;
        const struct mcp_server *server;
        pthread_t thread;
        bool threaded;
        int rc;
        struct steno_error err;
        struct mcp_client *client;
        struct mcp_tool *tools;
        size_t count;
        bool more;
};

static void *open_server(void *arg)
{
        struct opening *o = arg;

        o->rc = mcp_client_open(
            o->server, &o->opt->host, o->opt->start_ms, o->opt->stop, &o->client, &o->err);
        if (o->rc == 0)
                o->rc = mcp_client_tools(
                    o->client, o->opt->stop, &o->tools, &o->count, &o->more, &o->err);
        return NULL;
}

static void open_all(struct opening *list, size_t n)
{
        sigset_t all, before;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        for (size_t i = 0; i < n; i++)
                if (!list[i].server->disabled)
                        list[i].threaded =
                            pthread_create(&list[i].thread, NULL, open_server, &list[i]) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        for (size_t i = 0; i < n; i++) {
                if (list[i].threaded)
                        pthread_join(list[i].thread, NULL);
                else if (!list[i].server->disabled)
                        open_server(&list[i]);
        }
}

/* ---- offering ---- */

static bool is_taken(void *ctx, const char *name)
{
        return toolset_find(ctx, str_of(name)) != NULL;
}

static int add_tool(struct steno_tools *set, const struct opening *o, const struct mcp_tool *t,
    struct steno_error *err)
{
        char name[MCP_NAME_MAX + 1];

        /* A call of such a tool could not say in its headers what it must. */
        if (!mcp_param_legal(str_of(t->input_schema)))
                return 0;
        /* The same name twice: a call by this name reaches the first. */
        if (!mcp_name_offer(o->server->name, t->name, is_taken, set, name))
                return 0;
        struct tool tool = {.name = toolset_strdup(set, str_of(name)),
            .raw_name = toolset_strdup(set, str_of(t->name)),
            .server = o->server->name,
            .flags = (t->read_only ? TOOL_PARALLEL : 0u) |
                     (mcp_server_opens(o->server, t->name) ? TOOL_VISITORS : 0u),
            .limit_ms = (uint32_t)o->server->timeout_ms,
            .call = call_server,
            .ctx = o->client};
        const char *schema = toolset_strdup(set, str_of(t->input_schema));
        if (t->description)
                tool.description = toolset_strdup(set, str_of(t->description));
        if (!tool.name || !tool.raw_name || !schema || (t->description && !tool.description))
                return error_nomem(err);
        tool.schema = str_of(schema);
        return toolset_add(set, &tool, err);
}

static void close_client(void *client)
{
        mcp_client_close(client);
}

static int offer(struct steno_tools *set, struct opening *o, struct steno_error *err)
{
        struct mcp_client *client = o->client;
        int rc = toolset_own(set, client, close_client, err);

        if (rc < 0) {
                o->client = NULL;
                return rc;
        }
        for (size_t i = 0; i < o->count && rc == 0; i++)
                rc = add_tool(set, o, &o->tools[i], err);
        o->client = NULL;
        return rc;
}

int mcp_tools_add(struct steno_tools *set, const struct mcp_tools_options *opt,
    struct buf *warnings, struct steno_error *err)
{
        int rc = 0;

        if (opt->count == 0)
                return 0;
        struct opening *list = calloc(opt->count, sizeof(*list));
        if (!list)
                return error_nomem(err);
        for (size_t i = 0; i < opt->count; i++) {
                list[i].opt = opt;
                list[i].server = &opt->servers[i];
        }
        open_all(list, opt->count);
        for (size_t i = 0; i < opt->count; i++) {
                struct opening *o = &list[i];
                if (rc == 0 && o->rc == 0 && o->client)
                        rc = offer(set, o, err);
                else if (o->rc < 0 && warnings)
                        buf_printf(warnings, "MCP server %s is not available: %s\n",
                            o->server->name, o->err.msg);
                if (o->rc == 0 && o->more && warnings)
                        buf_printf(warnings,
                            "MCP server %s has more tools than are taken; the first %zu are "
                            "offered\n",
                            o->server->name, o->count);
                mcp_client_close(o->client);
                mcp_tools_free(o->tools, o->count);
        }
        free(list);
        return rc;
}
