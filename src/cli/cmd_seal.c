/*
 * cmd_seal.c - steno seal, verify, prove and key: a record that can be proven.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/term.h"
#include "loop/sealkey.h"

/* ---- seal ---- */

struct seal_opts {
        bool all;
};

static int show_sealed(struct cli *c, char *report)
{
        struct json j;
        struct buf note;
        uint64_t changed = 0, records = 0;

        if (c->json)
                return cli_print_json(c, report);
        json_init(&j);
        buf_init(&note, 0);
        if (json_parse(&j, report, strlen(report), NULL, NULL) == 0) {
                json_u64(&j, json_get(&j, 0, "changed"), &changed);
                json_u64(&j, json_get(&j, 0, "records"), &records);
                json_string(&j, json_get(&j, 0, "checkpoint"), &note, NULL);
                cli_say(c, "%llu record%s in %llu conversation%s sealed",
                    (unsigned long long)records, records == 1 ? "" : "s",
                    (unsigned long long)changed, changed == 1 ? "" : "s");
                out_text(&c->out, buf_str(&note));
        }
        buf_release(&note);
        json_release(&j);
        steno_free(report);
        return EXIT_DONE;
}

static int run_seal(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct seal_opts *o = opts;
        struct steno_error err = {0};
        struct term_progress bar;
        char *report = NULL;

        if (o->all && argc > 0)
                return cli_usage(c, "--all seals every conversation: use it without %s", argv[0]);
        c->sealing = true;
        int rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        term_progress_init(&bar, c->quiet);
        for (int i = 0; rc == 0 && i < (argc ? argc : 1); i++) {
                steno_free(report);
                report = NULL;
                rc = steno_seal(c->store, c->project, argc ? argv[i] : NULL, term_progress_step,
                    &bar, &report, &err);
        }
        term_progress_end(&bar);
        if (rc == STENO_EDENIED)
                return cli_refuse(c, EXIT_REFUSED,
                    "there is no key to seal with: make one with steno key new, or set "
                    "STENO_SEAL_KEY");
        return rc < 0 ? cli_fail(c, &err) : show_sealed(c, report);
}

static const struct opt seal_table[] = {
    {"all", 0, OPT_FLAG, NULL, offsetof(struct seal_opts, all),
        "every conversation of every project that has changed; the default without CONV"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_seal = {
    .name = "seal",
    .group = GROUP_KEEP,
    .usage = "[CONV...]",
    .summary = "signs what is stored, so that later changes can be detected",
    .detail =
        "Prints the checkpoint of the store's log of seals. Keep it in a place that nobody who\n"
        "can change the store can change. A seal detects changes; it does not prevent them.",
    .example = "steno seal --all >>checkpoints.txt",
    .opts = seal_table,
    .opts_size = sizeof(struct seal_opts),
    .max_args = -1,
    .run = run_seal,
};

/* ---- verify ---- */

struct verify_opts {
        const char *checkpoint;
        const char *key;
        const char *proof;
};

static void put_finding(struct cli *c, const struct json *j)
{
        struct buf b;
        uint64_t seq, last;
        bool note = json_bool(j, json_get(j, 0, "note"), false);

        buf_init(&b, 0);
        if (json_string(j, json_get(j, 0, "project"), &b, NULL)) {
                buf_putc(&b, '/');
                json_string(j, json_get(j, 0, "conversation"), &b, NULL);
                if (json_u64(j, json_get(j, 0, "seq"), &seq))
                        buf_printf(&b, " seq %llu", (unsigned long long)seq);
                if (json_u64(j, json_get(j, 0, "lastSeq"), &last))
                        buf_printf(&b, "-%llu", (unsigned long long)last);
                buf_puts(&b, ": ");
        }
        json_string(j, json_get(j, 0, "kind"), &b, NULL);
        buf_puts(&b, ": ");
        json_string(j, json_get(j, 0, "what"), &b, NULL);
        if (json_bool(j, json_get(j, 0, "trash"), false))
                buf_puts(&b, " (in the trash)");
        out_style(&c->out, note ? "33" : "31");
        out_text(&c->out, buf_str(&b));
        out_plain(&c->out);
        out_puts(&c->out, "\n");
        buf_release(&b);
}

static int take_finding(void *ctx, const char *json)
{
        struct cli *c = ctx;
        struct json j;

        if (c->json) {
                out_text(&c->out, str_of(json));
                out_puts(&c->out, "\n");
        } else {
                json_init(&j);
                if (json_parse(&j, json, strlen(json), NULL, NULL) == 0)
                        put_finding(c, &j);
                json_release(&j);
        }
        return c->out.sys != 0 || interrupt_pending();
}

/* A key is given as its text or as a file that has it. */
static int read_key(struct cli *c, const char *given, struct buf *out)
{
        char *public = NULL;

        if (given == NULL)
                return 0;
        if (steno_key_public(given, &public, NULL) < 0)
                return input_slurp(c, given, out);
        buf_puts(out, public);
        steno_free(public);
        return 0;
}

static int check_proof(struct cli *c, const char *path, struct buf *key)
{
        struct steno_error err = {0};
        struct buf proof;
        char *own = NULL;

        if (key->n == 0 && sealkey_load((const char *const *)environ, &own, &err) == 0)
                buf_puts(key, own);
        sealkey_free(own);
        if (key->n == 0)
                return cli_usage(c, "--proof needs --key, the public key that it is verified with");
        buf_init(&proof, 0);
        int rc = input_slurp(c, path, &proof);
        if (rc == 0 && steno_prove_check(proof.p, proof.n, buf_cstr(key), &err) < 0)
                rc = cli_fail(c, &err);
        else if (rc == 0)
                cli_say(c, "the proof is valid");
        buf_release(&proof);
        return rc;
}

static int show_verified(struct cli *c, char *report, int findings)
{
        struct json j;
        uint64_t records = 0, conversations = 0, unsealed = 0;

        json_init(&j);
        if (json_parse(&j, report, strlen(report), NULL, NULL) == 0) {
                json_u64(&j, json_get(&j, 0, "records"), &records);
                json_u64(&j, json_get(&j, 0, "conversations"), &conversations);
                json_u64(&j, json_get(&j, 0, "unsealed"), &unsealed);
                if (json_is(&j, json_get(&j, 0, "signatures"), "not checked"))
                        cli_say(c, "signatures were not checked: give --key");
        }
        json_release(&j);
        if (c->json)
                return cli_print_json(c, report);
        steno_free(report);
        if (findings == 0)
                cli_say(c, "%llu record%s of %llu conversation%s %s what was sealed",
                    (unsigned long long)records, records == 1 ? "" : "s",
                    (unsigned long long)conversations, conversations == 1 ? "" : "s",
                    records == 1 ? "is" : "are");
        else
                cli_say(c, "%d finding%s", findings, findings == 1 ? "" : "s");
        if (unsealed > 0)
                cli_say(c, "%llu later record%s not sealed yet", (unsigned long long)unsealed,
                    unsealed == 1 ? " is" : "s are");
        return EXIT_DONE;
}

static int run_verify(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct verify_opts *o = opts;
        struct steno_verify_options opt = {.size = sizeof(opt)};
        struct steno_error err = {0};
        struct term_progress bar;
        struct buf key, note;
        char *report = NULL;

        buf_init(&key, 0);
        buf_init(&note, 0);
        int rc = read_key(c, o->key, &key);
        if (rc == 0 && o->proof != NULL) {
                rc = check_proof(c, o->proof, &key);
                buf_release(&key);
                return rc;
        }
        if (rc == 0 && o->checkpoint != NULL)
                rc = input_slurp(c, o->checkpoint, &note);
        if (rc == 0 && o->checkpoint != NULL && str_trim(buf_str(&note)).n == 0)
                rc = cli_refuse(c, EXIT_REFUSED, "there is no checkpoint in %s", o->checkpoint);
        c->sealing = o->key == NULL;
        if (rc == 0)
                rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc == 0) {
                term_progress_init(&bar, c->quiet);
                opt.project = argc > 0 ? c->project : NULL;
                opt.id = argc > 0 ? argv[0] : NULL;
                opt.key = key.n ? buf_cstr(&key) : NULL;
                opt.checkpoint = note.n ? buf_cstr(&note) : NULL;
                opt.progress = term_progress_step;
                opt.progress_ctx = &bar;
                int found = steno_verify(c->store, &opt, take_finding, c, &report, &err);
                term_progress_end(&bar);
                if (found < 0)
                        rc = cli_fail(c, &err);
                else if ((rc = show_verified(c, report, found)) == EXIT_DONE && found > 0)
                        rc = EXIT_CORRUPT;
        }
        buf_release(&key);
        buf_release(&note);
        return rc;
}

static const struct opt verify_table[] = {
    {"checkpoint", 0, OPT_TEXT, "FILE", offsetof(struct verify_opts, checkpoint),
        "checkpoints that were kept elsewhere; the log must still continue them"},
    {"key", 0, OPT_TEXT, "KEY|FILE", offsetof(struct verify_opts, key),
        "the public key that signed; your own by default"},
    {"proof", 0, OPT_TEXT, "FILE", offsetof(struct verify_opts, proof),
        "verifies a proof of steno prove, without a store"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_verify = {
    .name = "verify",
    .group = GROUP_KEEP,
    .usage = "[CONV]",
    .summary =
        "compares the store with its seals; reports what was changed, added, removed or moved",
    .detail = "Exit code 4 means that something differs from what was sealed.",
    .example = "steno verify --key auditor.pub --checkpoint checkpoints.txt",
    .opts = verify_table,
    .opts_size = sizeof(struct verify_opts),
    .max_args = 1,
    .run = run_verify,
};

/* ---- prove ---- */

static int run_prove(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        char *json = NULL, *end;

        (void)opts, (void)argc;
        if (argv[1][0] == '\0' || strspn(argv[1], "0123456789") != strlen(argv[1]))
                return cli_usage(c, "\"%s\" is not a seq", argv[1]);
        int rc = cli_open_conv(c, argv[0]);
        if (rc != 0)
                return rc;
        if (steno_prove(c->conv, strtoull(argv[1], &end, 10), &json, &err) < 0)
                return cli_fail(c, &err);
        return cli_print_json(c, json);
}

const struct command cmd_prove = {
    .name = "prove",
    .group = GROUP_KEEP,
    .usage = "CONV SEQ",
    .summary = "prints a proof that a record was sealed, which can be verified without the store",
    .example = "steno prove demo 4 >proof.json\n"
               "steno verify --proof proof.json --key auditor.pub",
    .min_args = 2,
    .max_args = 2,
    .run = run_prove,
};

/* ---- keys ---- */

struct key_opts {
        const char *name;
};

static int show_public(struct cli *c, const char *private_key)
{
        struct steno_error err = {0};
        char *public = NULL;

        if (steno_key_public(private_key, &public, &err) < 0)
                return cli_fail(c, &err);
        out_text(&c->out, str_of(public));
        out_puts(&c->out, "\n");
        steno_free(public);
        return EXIT_DONE;
}

static int run_key_new(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct key_opts *o = opts;
        struct steno_error err = {0};
        char *key = NULL, *path = NULL;

        (void)argc, (void)argv;
        int rc = steno_key_new(o->name, &key, &err);
        if (rc == 0)
                rc = sealkey_save((const char *const *)environ, key, &path, &err);
        if (rc < 0) {
                sealkey_free(key);
                return cli_fail(c, &err);
        }
        cli_say(c, "the key is in %s; this is its public key, for those who verify", path);
        rc = show_public(c, key);
        sealkey_free(key);
        free(path);
        return rc;
}

static int run_key_show(struct cli *c, const void *opts, int argc, char **argv)
{
        struct steno_error err = {0};
        char *key = NULL;

        (void)opts, (void)argc, (void)argv;
        int rc = sealkey_load((const char *const *)environ, &key, &err);
        if (rc == STENO_ENOTFOUND)
                return cli_refuse(c, cli_exit_code(rc),
                    "there is no key yet (%s); steno key new makes one", err.msg);
        if (rc < 0)
                return cli_fail(c, &err);
        rc = show_public(c, key);
        sealkey_free(key);
        return rc;
}

static const struct opt key_table[] = {
    {"name", 0, OPT_TEXT, "NAME", offsetof(struct key_opts, name),
        "the name of the signer in every checkpoint; made up by default"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_key_new = {
    .name = "key new",
    .group = GROUP_KEEP,
    .usage = "",
    .summary = "makes a key to seal with, and prints its public key",
    .detail = "The private key is seal.key in the configuration folder. Whoever has it can sign.",
    .example = "steno key new --name example.org/steno",
    .opts = key_table,
    .opts_size = sizeof(struct key_opts),
    .run = run_key_new,
};

const struct command cmd_key_show = {
    .name = "key show",
    .group = GROUP_KEEP,
    .usage = "",
    .summary = "prints the public key",
    .example = "steno key show >auditor.pub",
    .run = run_key_show,
};
