/*
 * loop_driver - the loop on a real store, for tests that kill it.
 *
 *   loop_driver STORE CONV LINES [--prompt T | --continue] [--script FILE | --url U]
 *               [--model M] [--require NAME] [--turns N] [--idle MS] [--no-stream]
 *   loop_driver STORE CONV LINES --view        prints what a model would be shown
 *
 * Offers the tools `append_line` (appends its "line" to the file LINES, then takes "ms"
 * milliseconds), `big` (prints "bytes" bytes) and `fail`. Prints a line of JSON for everything it
 * is told: {"told":"assistant"|"tool"|"event","type"?,"seq"?,"json":...}, and at the end
 * {"told":"result","json":...} or {"told":"error","code":n,"text":...}.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "steno_loop.h"

static struct steno_stop *the_stop; /* for the signal handler */

static void on_signal(int sig)
{
        (void)sig;
        steno_stop_request(the_stop);
}

/* One write a line, so that a kill leaves whole lines. */
static void print_line(struct buf *b)
{
        buf_putc(b, '\n');
        ssize_t n = write(1, b->p, b->n);
        (void)n;
        buf_release(b);
}

static void tell(const char *what, const char *type, uint64_t seq, const char *json, size_t n)
{
        struct buf b;
        buf_init(&b, 0);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_key(&w, "told");
        jsonw_cstr(&w, what);
        if (type) {
                jsonw_key(&w, "type");
                jsonw_cstr(&w, type);
                jsonw_key(&w, "seq");
                jsonw_u64(&w, seq);
        }
        jsonw_key(&w, "json");
        jsonw_raw(&w, str_span(json, n));
        jsonw_object_end(&w);
        print_line(&b);
}

static void on_assistant(void *ctx, const char *json, size_t n)
{
        (void)ctx;
        tell("assistant", NULL, 0, json, n);
}

static void on_tool(void *ctx, const char *json, size_t n)
{
        (void)ctx;
        tell("tool", NULL, 0, json, n);
}

static void on_event(void *ctx, uint64_t seq, const char *type, const char *data, size_t n)
{
        (void)ctx;
        tell("event", type, seq, data, n);
}

static int append_line(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        size_t n;
        const char *args = steno_tool_call_args(call, &n);
        struct json j;
        int64_t ms = 0;
        json_init(&j);
        int rc = json_parse(&j, args, n, NULL, err);
        if (rc)
                return rc;
        char *line = json_dup_string(&j, json_get(&j, 0, "line"));
        json_i64(&j, json_get(&j, 0, "ms"), &ms);
        json_release(&j);
        int fd = open(ctx, O_WRONLY | O_APPEND | O_CREAT, 0600);
        char text[300];
        int len = snprintf(text, sizeof(text), "%s\n", line ? line : "?");
        free(line);
        if (fd < 0 || write(fd, text, (size_t)len) != len)
                rc = STENO_EIO;
        close(fd);
        for (int i = 0; i < ms && !steno_tool_call_stopped(call); i++)
                usleep(1000);
        if (rc == 0)
                rc = steno_tool_call_write(call, "appended ", 9, err);
        return rc ? rc : steno_tool_call_write(call, text, (size_t)len - 1, err);
}

static int big(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        (void)ctx;
        size_t n;
        const char *args = steno_tool_call_args(call, &n);
        long left = strtol(args + strcspn(args, "0123456789"), NULL, 10);
        for (long i = 0; left > 0; i++) {
                char line[64];
                int len = snprintf(line, sizeof(line), "line %ld of a large output\n", i);
                int rc = steno_tool_call_write(call, line, (size_t)len, err);
                if (rc)
                        return rc;
                left -= len;
        }
        return 0;
}

static int fail(void *ctx, struct steno_tool_call *call, struct steno_error *err)
{
        (void)ctx;
        (void)call;
        snprintf(err->msg, sizeof(err->msg), "it is broken");
        return STENO_EIO;
}

static int allow(void *ctx, const struct steno_permission_request *r, char reason[240])
{
        (void)ctx;
        (void)r;
        (void)reason;
        return STENO_ALLOW;
}

static char *slurp(const char *path)
{
        FILE *f = fopen(path, "r");
        if (!f)
                return NULL;
        struct buf b;
        buf_init(&b, 0);
        char chunk[4096];
        size_t n;
        while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
                buf_put(&b, chunk, n);
        fclose(f);
        return buf_take(&b, NULL);
}

static bool parse(int argc, char **argv, struct steno_loop_options *o)
{
        for (int i = 4; i < argc; i++) {
                const char *a = argv[i];
                if (strcmp(a, "--continue") == 0) {
                        o->flags |= STENO_LOOP_CONTINUE;
                        continue;
                }
                if (strcmp(a, "--no-stream") == 0) {
                        o->flags |= STENO_LOOP_NO_STREAM;
                        continue;
                }
                if (++i == argc)
                        return false;
                if (strcmp(a, "--prompt") == 0)
                        o->prompt = argv[i];
                else if (strcmp(a, "--url") == 0)
                        o->base_url = argv[i];
                else if (strcmp(a, "--model") == 0)
                        o->model = argv[i];
                else if (strcmp(a, "--require") == 0)
                        o->require_tool = argv[i];
                else if (strcmp(a, "--turns") == 0)
                        o->max_turns = (uint32_t)strtoul(argv[i], NULL, 10);
                else if (strcmp(a, "--idle") == 0)
                        o->idle_ms = (uint32_t)strtoul(argv[i], NULL, 10);
                else if (strcmp(a, "--script") == 0) {
                        o->provider = "script";
                        o->script_json = slurp(argv[i]);
                } else {
                        return false;
                }
        }
        return true;
}

static int add_tools(struct steno_tools *tools, char *lines, struct steno_error *err)
{
        int rc = steno_tools_add(tools, "append_line", "appends a line to a file",
            "{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"string\"}}}", 0, append_line,
            lines, err);
        if (rc == 0)
                rc = steno_tools_add(
                    tools, "big", "prints much", NULL, STENO_TOOL_PARALLEL, big, NULL, err);
        if (rc == 0)
                rc = steno_tools_add(tools, "fail", "fails", NULL, 0, fail, NULL, err);
        return rc;
}

static int print_piece(void *ctx, const void *p, size_t n)
{
        (void)ctx;
        return fwrite(p, 1, n, stdout) == n ? 0 : STENO_EIO;
}

static int view(const struct steno_loop_options *o, struct steno_error *err)
{
        struct steno_view_options opt = {.size = sizeof(opt), .format = "openai"};
        return steno_view(o->conv, &opt, print_piece, NULL, NULL, err);
}

int main(int argc, char **argv)
{
        struct steno_loop_options o = {
            .size = sizeof(o),
            .model = "test",
            .api_key = "sk-driver",
            .permit = allow,
            .on_assistant_message = on_assistant,
            .on_tool_message = on_tool,
            .on_event = on_event,
        };
        bool only_view = argc == 5 && strcmp(argv[4], "--view") == 0;
        if (argc < 5 || (!only_view && !parse(argc, argv, &o))) {
                fprintf(stderr, "usage: see the head of loop_driver.c\n");
                return 2;
        }
        struct steno_error err = {0};
        char *result = NULL;
        int rc = steno_open(argv[1], NULL, &o.store, &err);
        if (rc == 0)
                rc = steno_conv_open(o.store, "default", argv[2], &o.conv, &err);
        if (rc == STENO_ENOTFOUND)
                rc = steno_conv_create(o.store, "default", argv[2], NULL, &o.conv, &err);
        if (rc == 0 && only_view) {
                rc = view(&o, &err);
                goto out;
        }
        if (rc == 0)
                rc = steno_tools_new(&o.tools, &err);
        if (rc == 0)
                rc = add_tools(o.tools, argv[3], &err);
        if (rc == 0)
                rc = steno_stop_new(&the_stop, &err);
        o.stop = the_stop;
        signal(SIGINT, on_signal);
        if (rc == 0)
                rc = steno_chat_loop(&o, &result, &err);
        if (rc == 0) {
                tell("result", NULL, 0, result, strlen(result));
        } else {
                struct buf b;
                buf_init(&b, 0);
                buf_printf(&b, "{\"told\":\"error\",\"code\":%d,\"text\":", rc);
                json_put_string(&b, str_of(err.msg));
                buf_putc(&b, '}');
                print_line(&b);
        }
out:
        steno_free(result);
        free((char *)o.script_json);
        steno_tools_free(o.tools);
        steno_conv_close(o.conv);
        steno_close(o.store);
        steno_stop_free(the_stop);
        return rc ? 1 : 0;
}
