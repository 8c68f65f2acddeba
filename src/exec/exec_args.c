/*
 * exec_args.c - strict reading of execute_command's arguments.
 */
#include "exec/exec_args.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_keys.h"

#define ARGUMENTS_MAX 4096
#define SECONDS_MAX (24 * 3600)

const char exec_args_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"argv\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"description\":"
    "\"The program and its arguments, run as they are: no shell, no quoting, no expansion. "
    "Prefer this.\"},"
    "\"shell\":{\"type\":\"string\",\"description\":"
    "\"Instead of argv: a script for /bin/sh -c, where pipes or redirections are needed.\"},"
    "\"directory\":{\"type\":\"string\",\"description\":"
    "\"Where to run it; relative to the working directory, which is the default.\"},"
    "\"timeout_seconds\":{\"type\":\"integer\",\"minimum\":1,\"description\":"
    "\"Ends the command after this time.\"}},"
    "\"additionalProperties\":false}";

static const char *const known[] = {"argv", "shell", "directory", "timeout_seconds", NULL};

static int read_members(struct exec_args *a, const struct json *j, struct steno_error *err)
{
        int rc = json_keys_check(j, 0, known, "arguments", err);

        if (rc == 0)
                rc = json_keys_strings(j, 0, "argv", "arguments", &a->argv, err);
        if (rc == 0)
                rc = json_keys_string(j, 0, "shell", "arguments", &a->shell, err);
        if (rc == 0)
                rc = json_keys_string(j, 0, "directory", "arguments", &a->directory, err);
        if (rc == 0)
                rc = json_keys_number(
                    j, 0, "timeout_seconds", "arguments", SECONDS_MAX, &a->seconds, err);
        if (rc == 0 && !a->seconds && json_get(j, 0, "timeout_seconds") != JSON_NONE)
                rc = error_set(err, STENO_EINVAL,
                    "arguments: \"timeout_seconds\" must be a whole number from 1 to %d",
                    SECONDS_MAX);
        return rc;
}

static int check_members(const struct exec_args *a, struct steno_error *err)
{
        size_t n = 0;

        if (!a->argv == !a->shell)
                return error_set(err, STENO_EINVAL,
                    "arguments: give either \"argv\" (a list of strings) or \"shell\" (a string)");
        while (a->argv && a->argv[n])
                n++;
        if (a->argv && (n == 0 || n > ARGUMENTS_MAX || !a->argv[0][0]))
                return error_set(err, STENO_EINVAL,
                    "arguments: \"argv\" must begin with a program and have at most %d entries",
                    ARGUMENTS_MAX);
        if (a->directory && !a->directory[0])
                return error_set(err, STENO_EINVAL, "arguments: \"directory\" is empty");
        return 0;
}

int exec_args_parse(struct exec_args *a, struct str json, struct steno_error *err)
{
        struct json j;

        memset(a, 0, sizeof(*a));
        json_init(&j);
        int rc = json_parse(&j, json.p, json.n, NULL, err);
        if (rc < 0)
                rc = error_prefix(err, rc, "arguments");
        if (rc == 0)
                rc = read_members(a, &j, err);
        if (rc == 0)
                rc = check_members(a, err);
        if (rc < 0)
                exec_args_release(a);
        json_release(&j);
        return rc;
}

void exec_args_release(struct exec_args *a)
{
        json_keys_free_list(a->argv);
        free(a->shell);
        free(a->directory);
        memset(a, 0, sizeof(*a));
}
