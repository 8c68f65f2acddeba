/* The reference MCP servers from npm, over stdio and HTTP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "mcp_rig.h"
#include "support/patience.h"

#define EVERYTHING                                                                                 \
        TESTS_DIR "/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
#define FILESYSTEM                                                                                 \
        TESTS_DIR "/npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"

static void rig_node(struct rig *r, const char *name, const char *script, const char *arg)
{
        rig_init(r, name, "node");
        r->args[0] = (char *)script;
        r->args[1] = (char *)arg;
        rig_start(r);
        if (r->warnings.n)
                fail_msg("%s", buf_cstr(&r->warnings));
}

/* What the everything server must be able to do, however it is reached. */
static void try_everything(const struct rig *r)
{
        struct fake_call f;

        assert_true(r->set.count >= 10);
        expect(r, "mcp__every__echo", "{\"message\":\"h\\u00e9llo\"}", "Echo: h\xC3\xA9llo");
        expect(r, "mcp__every__get-sum", "{\"a\":2,\"b\":3}", "The sum of 2 and 3 is 5.");

        fake_init(&f);
        assert_int_equal(fake_run(&f, &r->set, "mcp__every__trigger-long-running-operation",
                             "{\"duration\":0.4,\"steps\":4}"),
            0);
        assert_string_equal(fake_steps(&f), "- 1/4;- 2/4;- 3/4;- 4/4;");
        fake_release(&f);

        fake_init(&f);
        assert_int_equal(fake_run(&f, &r->set, "mcp__every__get-tiny-image", "{}"), 0);
        assert_non_null(strstr(fake_text(&f), "[image image/png, "));
        assert_non_null(strstr(fake_text(&f), "data:image/png;base64,iVBOR"));
        fake_release(&f);

        fake_init(&f);
        assert_int_equal(
            fake_run(&f, &r->set, "mcp__every__get-resource-links", "{\"count\":2}"), 0);
        assert_non_null(strstr(fake_text(&f), "[resource_link "));
        fake_release(&f);

        fake_init(&f);
        assert_int_equal(fake_run(&f, &r->set, "mcp__every__get-sum", "{\"a\":\"x\"}"), 0);
        assert_true(f.result.is_error);
        assert_true(f.text.n > 0);
        fake_release(&f);
}

static void the_everything_server_works_over_stdio(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;

        setenv("STENO_CANARY", "canary-77", 1);
        rig_node(&r, "every", EVERYTHING, "stdio");
        try_everything(&r);
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__every__get-env", "{}"), 0);
        assert_null(strstr(fake_text(&f), "canary-77"));
        assert_non_null(strstr(fake_text(&f), "PATH"));
        fake_release(&f);
        rig_release(&r);
}

/* One of the ports that are this file's as long as it runs (tests/run). One that the kernel names
 * can be taken by a client of another test before the server listens on it. */
static int free_port(void)
{
        const char *own = getenv("STENO_TEST_PORTS");
        if (own)
                return atoi(own);
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof(a);
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
        close(fd);
        return ntohs(a.sin_port);
}

static void the_everything_server_works_over_http(void **state)
{
        (void)state;
        const char *argv[] = {"node", EVERYTHING, "streamableHttp", NULL};
        struct exec_process p;
        struct rig r;
        char **env, port[32], url[64];
        int number = free_port();

        snprintf(port, sizeof(port), "PORT=%d", number);
        snprintf(url, sizeof(url), "http://127.0.0.1:%d/mcp", number);
        const char *extra[] = {port, NULL};
        exec_env((const char *const *)environ, NULL, extra, &env, NULL);
        struct exec_spec spec = {
            .argv = argv, .env = (const char *const *)env, .in = -1, .out = -1, .err = -1};
        assert_int_equal(exec_spawn(&spec, &p, NULL), 0);
        for (int i = 0; i < PATIENCE_MS / 200; i++) {
                rig_init(&r, "every", NULL);
                r.server.url = url;
                rig_start(&r);
                if (r.set.count)
                        break;
                rig_release(&r);
                usleep(200000);
        }
        try_everything(&r);
        rig_release(&r);
        exec_finish(&p);
        exec_env_free(env);
}

static void the_filesystem_server_reads_what_it_may(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;
        char dir[] = "/tmp/steno-files-XXXXXX", path[64], args[128], command[64];

        assert_non_null(mkdtemp(dir));
        snprintf(path, sizeof(path), "%s/a.txt", dir);
        FILE *file = fopen(path, "w");
        fputs("one\ntwo\n", file);
        fclose(file);
        rig_node(&r, "files", FILESYSTEM, dir);
        snprintf(args, sizeof(args), "{\"path\":\"%s\"}", path);
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__files__read_text_file", args), 0);
        assert_non_null(strstr(fake_text(&f), "one\ntwo\n"));
        assert_false(f.result.is_error);
        fake_release(&f);
        fake_init(&f);
        assert_int_equal(
            fake_run(&f, &r.set, "mcp__files__read_text_file", "{\"path\":\"/etc/passwd\"}"), 0);
        assert_true(f.result.is_error);
        assert_non_null(strstr(fake_text(&f), "denied"));
        fake_release(&f);
        rig_release(&r);
        snprintf(command, sizeof(command), "rm -r %s", dir);
        assert_int_equal(system(command), 0);
}

/* A server that is given the store's own folder still cannot read it. */
static void a_server_cannot_reach_a_hidden_directory(void **state)
{
        (void)state;
        struct rig r;
        struct fake_call f;
        char dir[] = "/tmp/steno-files-XXXXXX", secret[64], path[96], args[160], command[64];

        assert_non_null(mkdtemp(dir));
        snprintf(secret, sizeof(secret), "%s/store", dir);
        mkdir(secret, 0700);
        snprintf(path, sizeof(path), "%s/messages.jsonl", secret);
        FILE *file = fopen(path, "w");
        fputs("canary-88\n", file);
        fclose(file);
        rig_init(&r, "files", "node");
        r.args[0] = FILESYSTEM;
        r.args[1] = dir;
        const char *hidden[] = {secret, NULL};
        r.opt.host.hidden = hidden;
        rig_start(&r);
        snprintf(args, sizeof(args), "{\"path\":\"%s\"}", path);
        fake_init(&f);
        assert_int_equal(fake_run(&f, &r.set, "mcp__files__read_text_file", args), 0);
        assert_null(strstr(fake_text(&f), "canary-88"));
        assert_true(f.result.is_error);
        fake_release(&f);
        rig_release(&r);
        snprintf(command, sizeof(command), "rm -r %s", dir);
        assert_int_equal(system(command), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_everything_server_works_over_stdio),
            cmocka_unit_test(the_everything_server_works_over_http),
            cmocka_unit_test(the_filesystem_server_reads_what_it_may),
            cmocka_unit_test(a_server_cannot_reach_a_hidden_directory),
        };

        if (access(EVERYTHING, R_OK) != 0 || access(FILESYSTEM, R_OK) != 0) {
                printf("1..0 # SKIP the packages of tests/npm are not installed\n");
                return 0;
        }
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
