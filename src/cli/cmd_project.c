/*
 * cmd_project.c - steno project: the settings of a project.
 */
#include <string.h>

#include "base/json.h"
#include "cli/command.h"

struct project_opts {
        const char *outputs;
};

static int run_project(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct project_opts *o = opts;
        struct steno_error err = {0};
        char *settings = NULL;
        const char *project = argc > 0 ? argv[0] : c->project;
        int rc = cli_open_store(c, CLI_MUST_EXIST);

        if (rc != 0)
                return rc;
        if (o->outputs != NULL) {
                struct buf patch;
                buf_init(&patch, 0);
                struct jsonw w = jsonw_to(&patch);
                jsonw_object(&w);
                if (strcmp(o->outputs, "default") == 0)
                        jsonw_field_raw(&w, "outputs", STR("null"));
                else
                        jsonw_field_cstr(&w, "outputs", o->outputs);
                jsonw_object_end(&w);
                rc = steno_project_change(c->store, project, patch.p, patch.n, &settings, &err);
                buf_release(&patch);
        } else {
                rc = steno_project_settings(c->store, project, &settings, &err);
        }
        if (rc < 0)
                return cli_fail(c, &err);
        return cli_print_json(c, settings);
}

static const struct opt project_table[] = {
    {"outputs", 0, OPT_CHOICE, "stub|full|default", offsetof(struct project_opts, outputs),
        "what a client that stored a large output gets back by default"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_project = {
    .name = "project",
    .group = GROUP_KEEP,
    .usage = "[PROJECT]",
    .summary = "shows the settings of a project, or changes them",
    .detail = "The configs of a conversation and the parameter of a request override them.",
    .example = "steno project shop --outputs stub",
    .max_args = 1,
    .opts = project_table,
    .opts_size = sizeof(struct project_opts),
    .run = run_project,
};
