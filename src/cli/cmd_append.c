/*
 * cmd_append.c - steno append: a stream of JSON values, each is stored before the next one is read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"

/* Shown if the input is not JSON from its first byte on. */
#define EXAMPLE "; a message is an object such as {\"role\":\"user\",\"content\":\"Hello\"}"

struct append_opts {
        struct opt_number expect;
        struct opt_number max_chars;
        struct opt_number max_bytes;
        const char *durability;
        const char *profile;
        const char *format;
        const char *key;
        bool record;
        bool create;
};

struct appending {
        struct cli *c;
        const struct append_opts *o;
        struct steno_append_options opt;
        uint64_t values;   /* appended so far */
        uint64_t messages; /* in them */
        char key[320];     /* of the value at hand */
        char hash[SHA256_HEX];
};

static void prepare(struct appending *a)
{
        const struct append_opts *o = a->o;

        a->opt.size = sizeof(a->opt);
        a->opt.flags = (o->record ? STENO_RECORD : 0) | (o->expect.set ? STENO_EXPECT_SEQ : 0);
        a->opt.expected_seq = o->expect.v;
        a->opt.durability =
            o->durability && strcmp(o->durability, "process") == 0 ? STENO_PROCESS : STENO_FULL;
        a->opt.format = o->format;
        a->opt.profile = o->profile;
        a->opt.max_inline_chars = o->max_chars.v;
        a->opt.max_inline_bytes = o->max_bytes.v;
}

/* The key of the next batch. The first batch has the key that the user gave. Later ones have a
 * number behind it, so that the same stream gives the same keys when it is sent again. */
static const char *key_of(struct appending *a)
{
        if (a->o->key == NULL || a->values == 0)
                return a->o->key;
        int n = snprintf(
            a->key, sizeof(a->key), "%s#%llu", a->o->key, (unsigned long long)a->values + 1);
        /* A key with a number may be too long. Its hash stands for it then, because otherwise
         * only the first batch would be accepted. */
        if (n > ID_MAX && hash_sha256_hex(a->key, strlen(a->key), a->hash) == 0)
                return a->hash;
        return a->key;
}

/* A hint for those who append a whole request or transcript instead of a message. */
static const char *hint_of(struct str value)
{
        struct json j;
        json_init(&j);
        bool has = json_parse(&j, value.p, value.n, NULL, NULL) == 0 &&
                   json_type(&j, json_get(&j, 0, "messages")) == JSON_ARRAY;
        json_release(&j);
        return has ? "; what it has in \"messages\" can be appended: jq .messages" : "";
}

static int fail_value(struct appending *a, struct str value, const struct steno_error *err)
{
        unsigned long long first = a->messages + 1, k = 0;
        int skip = 0;

        if (a->c->out.sys != 0)
                return EXIT_IO;
        if (err->code == STENO_EINTERRUPTED)
                return cli_fail(a->c, err);
        /* The library counts in the batch; the person counts in the stream. */
        if (sscanf(err->msg, "message %llu: %n", &k, &skip) == 1 && skip > 0)
                first += k - 1;
        else if (value.p[0] == '[' && json_valid(value.p, value.n, NULL))
                return cli_refuse(
                    a->c, cli_exit_code(err->code), "batch at message %llu: %s", first, err->msg);
        return cli_refuse(a->c, cli_exit_code(err->code), "message %llu: %s%s", first,
            err->msg + skip, strcmp(err->msg + skip, "no role") == 0 ? hint_of(value) : "");
}

static int append_value(struct appending *a, struct str value)
{
        struct steno_receipt *receipt = NULL;
        struct steno_error err = {0};

        a->opt.idempotency_key = key_of(a);
        if (steno_append(a->c->conv, value.p, value.n, &a->opt, &receipt, &err) < 0)
                return fail_value(a, value, &err);
        a->values++;
        a->messages += steno_receipt_count(receipt);
        a->opt.expected_seq = steno_receipt_last_seq(receipt);
        out_text(&a->c->out, str_of(steno_receipt_json(receipt)));
        out_puts(&a->c->out, "\n");
        steno_receipt_free(receipt);
        return out_flush(&a->c->out) != 0 ? EXIT_IO : 0;
}

static int append_file(struct appending *a, const char *path)
{
        struct input_values in;
        struct str value;
        uint64_t at = 0;
        const char *what = NULL;
        int fd = input_open(a->c, path);
        int rc = 0;

        if (fd < 0)
                return -fd;
        input_values_init(&in, fd);
        while (rc == 0) {
                enum input_next next = input_values_next(&in, &value, &at, &what);
                if (next == INPUT_END)
                        break;
                if (next == INPUT_VALUE)
                        rc = append_value(a, value);
                else if (next == INPUT_FAULT)
                        rc = cli_refuse(a->c, EXIT_REFUSED, "message %llu: %s: byte %llu: %s%s",
                            (unsigned long long)a->messages + 1, input_name(path),
                            (unsigned long long)at, what, at < 2 && !a->messages ? EXAMPLE : "");
                else if (next == INPUT_TOO_BIG)
                        rc = cli_refuse(a->c, EXIT_REFUSED, "message %llu: %s: %s",
                            (unsigned long long)a->messages + 1, input_name(path), what);
                else if (errno == EINTR)
                        rc = EXIT_INTERRUPTED;
                else
                        rc = cli_refuse(a->c, EXIT_IO, "%s: %s", input_name(path), strerror(errno));
        }
        input_values_release(&in);
        if (fd != STDIN_FILENO)
                close(fd);
        return rc;
}

static int open_conv(struct cli *c, const char *id)
{
        struct steno_error err = {0};
        int rc = cli_open_store(c, CLI_MUST_EXIST);

        if (rc != 0)
                return rc;
        rc = steno_conv_open(c->store, c->project, id, &c->conv, &err);
        if (rc == STENO_ENOTFOUND)
                return cli_refuse(c, cli_exit_code(rc), "%s (--create makes it)", err.msg);
        return rc < 0 ? cli_fail(c, &err) : 0;
}

static int run_append(struct cli *c, const void *opts, int argc, char **argv)
{
        struct appending a = {.c = c, .o = opts};
        int rc = a.o->create ? cli_make_conv(c, argv[0]) : open_conv(c, argv[0]);

        if (rc != 0)
                return rc;
        prepare(&a);
        if (argc == 1)
                rc = append_file(&a, NULL);
        for (int i = 1; i < argc && rc == 0; i++)
                rc = append_file(&a, argv[i]);
        if (rc == 0 && a.values == 0)
                return cli_refuse(c, EXIT_REFUSED, "%s: it has no message",
                    input_name(argc == 1 ? NULL : argv[1]));
        return rc;
}

static const struct opt append_table[] = {
    {"expect", 0, OPT_NUMBER, "SEQ", offsetof(struct append_opts, expect),
        "refuse if the last seq is another one (0: an empty conversation)"},
    {"record", 0, OPT_FLAG, NULL, offsetof(struct append_opts, record),
        "accept a result that answers no call, and mark it"},
    {"create", 0, OPT_FLAG, NULL, offsetof(struct append_opts, create),
        "make the conversation if it does not exist"},
    {"durability", 0, OPT_CHOICE, "full|process", offsetof(struct append_opts, durability),
        "full (default): synced to the disk before the receipt"},
    {"format", 0, OPT_TEXT, "F", offsetof(struct append_opts, format),
        "the format of the messages: openai (default), anthropic, ..."},
    {"key", 0, OPT_TEXT, "KEY", offsetof(struct append_opts, key),
        "an idempotency key: the same stream is stored once"},
    {"profile", 0, OPT_TEXT, "P", offsetof(struct append_opts, profile),
        "which outputs get a file of their own: default or runtime-store"},
    {"max-inline-chars", 0, OPT_NUMBER, "N", offsetof(struct append_opts, max_chars),
        "larger tool outputs get a file of their own"},
    {"max-inline-bytes", 0, OPT_NUMBER, "N", offsetof(struct append_opts, max_bytes),
        "the same, in bytes"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_append = {
    .name = "append",
    .group = GROUP_RECORD,
    .usage = "CONV [FILE...]",
    .summary = "appends a stream of JSON messages from files or standard input",
    .detail =
        "An object is one message. An array is one batch, which is stored whole or not at all.\n"
        "Each value is stored as soon as its last byte has arrived, and its receipt, a line of\n"
        "JSON, is printed at once. Nothing is read after a value that is refused.",
    .example = "echo '{\"role\":\"user\",\"content\":\"Hello\"}' | steno append demo\n"
               "steno append demo --expect 1 reply.json",
    .opts = append_table,
    .opts_size = sizeof(struct append_opts),
    .min_args = 1,
    .max_args = -1,
    .run = run_append,
};
