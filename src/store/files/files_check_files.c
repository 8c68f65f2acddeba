/*
 * files_check_files.c - what stands beside the log: artifacts, parts, journals (check.h).
 */
#include "store/files/files_check_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/limits.h"
#include "store/files/manifest.h"
#include "store/files/run.h"

#define BLOCK ((size_t)64 * 1024)

/* ---- contents ---- */

/* The SHA-256 of an open file, and its size. */
static int hash_file(struct check *k, int fd, char hex[SHA256_HEX], uint64_t *size)
{
        unsigned char sum[SHA256_SIZE];
        struct sha256 sha;
        uint64_t at = 0;
        ssize_t got = 0;
        char *block = malloc(BLOCK);
        if (!block || hash_sha256_init(&sha)) {
                free(block);
                return error_nomem(k->err);
        }
        while ((got = fs_pread_all(k->fs, fd, block, BLOCK, (off_t)at)) > 0) {
                hash_sha256_update(&sha, block, (size_t)got);
                at += (uint64_t)got;
        }
        hash_sha256_finish(&sha, sum);
        hash_hex(sum, sizeof sum, hex);
        free(block);
        *size = at;
        return got < 0 ? error_sys(k->err, (int)got, "reading an artifact") : 0;
}

static int check_artifact(struct check *k, const struct artifact_info *info)
{
        char hex[SHA256_HEX];
        uint64_t size = 0;
        int fd = -1;
        struct steno_error why = {0};
        enum files_check_entry entry = ENTRY_FINE;
        char path[sizeof "artifacts//" + sizeof info->kind + sizeof info->name];
        int rc = 0;
        if (info->state != ARTIFACT_CLOSED)
                return 0; /* unfinished ones have what had arrived */
        snprintf(path, sizeof path, "artifacts/%s/%s", info->kind, info->name);
        /* A changed manifest may say anything, so only outputs may be moved because of it. */
        if (strcmp(info->kind, "tool") == 0 || strcmp(info->kind, "terminal") == 0)
                rc = files_check_entry(k, path, &entry);
        if (rc)
                return rc;
        rc = entry == ENTRY_FINE || entry == ENTRY_GONE
                 ? artifact_open(k->conv, info, &fd, &size, &why)
                 : error_set(&why, STENO_ECORRUPT, "the file of ref %s is missing", info->id);
        if (rc == STENO_ENOMEM)
                return error_nomem(k->err);
        if (rc) {
                struct artifact_info now;
                if (artifact_find(k->conv, str_of(info->id), &now, NULL) == 0 &&
                    now.state == ARTIFACT_DELETED)
                        return 0; /* purged since the list was read */
                return files_check_tell(k, 0, CHECK_MISSING,
                    "artifact %s (%s) cannot be opened: %s", info->id, info->name, why.msg);
        }
        rc = hash_file(k, fd, hex, &size);
        k->fs->close(k->fs, fd);
        if (rc)
                return rc;
        if (size != info->size)
                return files_check_tell(k, 0, size < info->size ? CHECK_MISSING : CHECK_STAYS,
                    "artifact %s (%s) has %llu bytes; the manifest says %llu", info->id, info->name,
                    (unsigned long long)size, (unsigned long long)info->size);
        return strcmp(hex, info->sha256) == 0
                   ? 0
                   : files_check_tell(k, 0, CHECK_STAYS,
                         "artifact %s (%s) has other bytes than the manifest says", info->id,
                         info->name);
}

struct parts {
        struct check *k;
        int dir;
};

static int check_part(void *ctx, const char *name, unsigned char type)
{
        struct parts *p = ctx;
        struct check *k = p->k;
        char hex[SHA256_HEX], path[sizeof "artifacts/parts/" + SHA256_HEX];
        uint64_t size;
        enum files_check_entry entry;
        (void)type;
        if (name[0] == '.' || strlen(name) != SHA256_HEX - 1)
                return 0;
        snprintf(path, sizeof path, "artifacts/parts/%s", name);
        int rc = files_check_entry(k, path, &entry);
        if (rc || entry != ENTRY_FINE)
                return rc; /* the records that have it are reported */
        int fd = k->fs->open(k->fs, p->dir, name, O_RDONLY, 0);
        if (fd < 0)
                return fd == -ENOENT ? 0 : error_sys(k->err, fd, "opening a part");
        rc = hash_file(k, fd, hex, &size);
        k->fs->close(k->fs, fd);
        if (rc || strcmp(hex, name) == 0)
                return rc;
        bool moved = false;
        k->copy = false; /* parts appear whole: this is damage that no copying has done */
        if (k->repair)
                rc = files_check_wrote(k, part_drop_wrong(k->conv, name, &moved, k->err));
        return rc ? rc
                  : files_check_tell(k, 0, files_check_repaired(k, moved),
                        "part %.16s... has other bytes than its name says", name);
}

static int check_parts(struct check *k, int artifacts)
{
        struct parts p = {.k = k};
        p.dir = k->fs->open(k->fs, artifacts, "parts", O_RDONLY | O_DIRECTORY, 0);
        if (p.dir < 0)
                return p.dir == -ENOENT ? 0 : error_sys(k->err, p.dir, "opening parts");
        int sys;
        int rc = fs_each(k->fs, p.dir, check_part, &p, &sys);
        k->fs->close(k->fs, p.dir);
        return sys ? error_sys(k->err, sys, "listing parts") : rc;
}

static int by_id(const void *a, const void *b)
{
        return strcmp(((const struct artifact_info *)a)->id, ((const struct artifact_info *)b)->id);
}

static int check_manifest(struct check *k, int artifacts)
{
        struct manifest_damage d;
        enum files_check_entry entry;
        int rc = files_check_entry(k, "artifacts/" MANIFEST_NAME, &entry);
        k->no_manifest = entry == ENTRY_STAYS || entry == ENTRY_LINK;
        if (rc || k->no_manifest)
                return rc;
        bool repair = k->repair;
        rc = manifest_mend(k->conv, artifacts, repair, &d, k->err);
        if (repair && (rc = files_check_wrote(k, rc)) == 0 && !k->repair)
                rc = manifest_mend(k->conv, artifacts, false, &d, k->err);
        if (rc == 0 && d.lines)
                rc = files_check_tell(k, 0, files_check_repaired(k, true),
                    "%llu line%s of artifacts/manifest.jsonl cannot be read",
                    (unsigned long long)d.lines, d.lines == 1 ? "" : "s");
        if (rc == 0 && d.torn)
                rc = files_check_tell(k, 0, files_check_repaired(k, true),
                    "the last line of artifacts/manifest.jsonl is torn");
        return rc;
}

int files_check_artifacts(struct check *k)
{
        int dir = k->fs->open(k->fs, k->conv->dir, "artifacts", O_RDONLY | O_DIRECTORY, 0);
        if (dir == -ENOENT)
                return 0;
        if (dir < 0)
                return error_sys(k->err, dir, "opening artifacts");
        int rc = check_manifest(k, dir);
        if (rc == 0 && !k->no_manifest)
                rc = manifest_read(k->fs, dir, &k->artifacts, &k->artifact_count, k->err);
        if (k->artifact_count)
                qsort(k->artifacts, k->artifact_count, sizeof *k->artifacts, by_id);
        for (size_t i = 0; rc == 0 && i < k->artifact_count; i++)
                rc = check_artifact(k, &k->artifacts[i]);
        if (rc == 0)
                rc = check_parts(k, dir);
        k->fs->close(k->fs, dir);
        return rc;
}

/* ---- what records refer to ---- */

/* Is it about a message that a purge has begun to take away? */
static int is_going(struct check *k, uint64_t seq, bool *going)
{
        *going = false;
        if (k->torn)
                return 0;
        if (!k->planned) {
                int rc = files_conv_lock(k->conv, k->err);
                if (rc)
                        return rc;
                rc = conv_refresh(k->conv, k->err);
                if (rc == 0)
                        rc = purge_plan_make(k->conv, &k->plan, k->err);
                files_conv_unlock(k->conv);
                if (rc)
                        return rc;
                k->planned = true;
        }
        *going = purge_plan_has(&k->plan, seq);
        return 0;
}

static int tell_missing(
    struct check *k, uint64_t seq, bool repaired, const char *kind, struct str name)
{
        return files_check_tell(k, seq, repaired ? CHECK_REPAIRED : CHECK_MISSING,
            "it refers to %s %.*s, which is missing or not whole", kind,
            (int)(name.n > 40 ? 40 : name.n), name.p);
}

static const struct artifact_info *find_listed(const struct check *k, struct str ref)
{
        struct artifact_info key;
        snprintf(key.id, sizeof key.id, "%.*s", (int)ref.n, ref.p);
        return k->artifact_count ? bsearch(&key, k->artifacts, k->artifact_count, sizeof key, by_id)
                                 : NULL;
}

/* 1: an artifact that a record was written for is closed in the manifest, or deleted; 0: not. */
static int is_closed(struct check *k, struct str ref, const struct artifact_info *said)
{
        struct artifact_info info;
        /* It may be younger than the list. */
        int rc = artifact_find(k->conv, ref, &info, NULL);
        if (rc && rc != STENO_ENOTFOUND)
                return error_set(k->err, rc, "artifact %.*s cannot be looked up",
                    (int)(ref.n > 40 ? 40 : ref.n), ref.p);
        /* A ref with a size was made when the artifact was closed. A ref without one may be to an
         * artifact that was left unfinished. */
        return rc == 0 && (info.state != ARTIFACT_OPEN || info.live || !said->size);
}

static int repair_ref(
    struct check *k, const struct artifact_info *said, struct str call, bool *done)
{
        int rc = files_conv_lock(k->conv, k->err);
        if (rc == 0) {
                rc = relist(k->conv, said, call, done, k->err);
                files_conv_unlock(k->conv);
        }
        return rc;
}

/* Both were written when the output was whole; a line that was made anew of a file may not. */
static int compare_sums(
    struct check *k, uint64_t seq, struct str sum, const struct artifact_info *listed)
{
        if (listed->state != ARTIFACT_CLOSED || !sum.n || str_is(sum, listed->sha256))
                return 0;
        return files_check_tell(k, seq, CHECK_STAYS,
            "artifact %s (%s) has other bytes than the record says", listed->id, listed->name);
}

/* The record's own sum of an artifact, where it says one. */
static struct str sum_of(const struct about *about, struct str ref)
{
        return str_eq(ref, about->ref) ? about->ref_sha : (struct str){0};
}

static int check_ref(
    struct check *k, uint64_t seq, const struct about *about, struct str m, size_t slot)
{
        struct artifact_info said = {0};
        struct str ref = about_ref_at(about, slot);
        const struct about_out *o = about_out_at(about, slot);
        const struct artifact_info *listed = ref.n ? find_listed(k, ref) : NULL;
        struct str call = o ? o->call : about->answer_count ? about->answers[0] : (struct str){0};
        bool going = false, done = false;
        int rc = 0;
        if (!ref.n || k->no_manifest)
                return 0;
        if (listed && listed->state != ARTIFACT_OPEN)
                return compare_sums(k, seq, o ? o->ref_sha : sum_of(about, ref), listed);
        if (o)
                backend_said_take(o, &said);
        else
                rc = backend_said_read(m, ref, &said, k->err);
        if (rc == 0 && !o)
                snprintf(said.sha256, sizeof said.sha256, "%.*s", (int)sum_of(about, ref).n,
                    sum_of(about, ref).p);
        if (rc == 0)
                rc = is_closed(k, ref, &said);
        if (rc)
                return rc < 0 ? rc : 0;
        rc = is_going(k, seq, &going);
        if (rc || going)
                return rc;
        if (k->repair && said.size)
                rc = files_check_wrote(k, repair_ref(k, &said, call, &done));
        return rc ? rc : tell_missing(k, seq, done, "artifact", ref);
}

int files_check_refs(struct check *k, uint64_t seq, const struct about *about, struct str m)
{
        struct stat st;
        char path[128];
        bool going = false;
        int rc = 0;
        for (size_t i = 0; rc == 0 && i < about_ref_slots(about); i++)
                rc = check_ref(k, seq, about, m, i);
        for (size_t i = 0; rc == 0 && i < about_part_slots(about); i++) {
                struct about_part p = about_part_at(about, i);
                snprintf(path, sizeof path, "artifacts/parts/%.*s", (int)p.name.n, p.name.p);
                if (!p.name.n || (k->fs->stat(k->fs, k->conv->dir, path, &st) == 0 &&
                                     S_ISREG(st.st_mode) && (uint64_t)st.st_size == p.size))
                        continue;
                rc = is_going(k, seq, &going);
                if (rc == 0 && !going)
                        rc = tell_missing(k, seq, false, "part", p.name);
        }
        return rc;
}

/* ---- journals ---- */

int files_check_journal_of(struct check *k, uint64_t seq, const struct about *about)
{
        char name[PLAIN_NAME_MAX + 1];
        /* Only a run writes these; others may name runs that never were in this store. */
        if (!about->run.n || (!about->of && !about->via.n) || str_is(about->kind, "tombstone"))
                return 0;
        if (id_file_name(about->run, name))
                return error_nomem(k->err);
        if (strcmp(name, k->last_run) == 0)
                return 0; /* was looked for */
        memcpy(k->last_run, name, sizeof k->last_run);
        if (run_exists(k->conv, name) || seq <= files_check_forked_seq(k))
                return 0;
        return files_check_tell(
            k, seq, CHECK_MISSING, "the journal of its run %s is missing", name);
}

static int repair_run(struct check *k, const char *name, bool *done)
{
        struct run_log *log = NULL;
        int rc = run_take_over(k->conv, name, &log, k->err);
        *done = rc == 0;
        run_log_close(log);
        return rc < 0 ? rc : 0;
}

static int check_run_file(void *ctx, const char *name)
{
        char path[sizeof "runs/.jsonl" + PLAIN_NAME_MAX];
        enum files_check_entry entry;
        snprintf(path, sizeof path, "runs/%s.jsonl", name);
        return files_check_entry(ctx, path, &entry);
}

/* Before the log is looked at, which tells of journals that are missing. */
int files_check_run_files(struct check *k)
{
        return run_each_name(k->conv, check_run_file, k, k->err);
}

static int check_run(void *ctx, const char *name)
{
        struct check *k = ctx;
        struct run_state s;
        struct run_damage d;
        char path[sizeof "runs/.jsonl" + PLAIN_NAME_MAX];
        struct stat st;
        bool done = false;
        snprintf(path, sizeof path, "runs/%s.jsonl", name);
        if (k->fs->stat(k->fs, k->conv->dir, path, &st) || !S_ISREG(st.st_mode))
                return 0; /* files_check_run_files tells of it */
        int rc = run_look(k->conv, name, &s, k->err);
        if (rc)
                return rc;
        bool held = s.held, headless = strcmp(s.head, "{}") == 0;
        backend_run_state_release(&s);
        rc = run_verify(k->conv, name, &d, k->err);
        if (rc == 0 && headless && !held)
                rc = files_check_tell(
                    k, 0, CHECK_STAYS, "run %s does not begin with its first line", name);
        if (rc == 0 && d.lines)
                rc = files_check_tell(k, 0, CHECK_STAYS, "%llu line%s of run %s cannot be read",
                    (unsigned long long)d.lines, d.lines == 1 ? "" : "s", name);
        if (rc || d.tail == 0 || held)
                return rc;
        if (k->repair)
                rc = files_check_wrote(k, repair_run(k, name, &done));
        return rc ? rc
                  : files_check_tell(k, 0, files_check_repaired(k, done),
                        "%llu bytes at the end of run %s are torn", (unsigned long long)d.tail,
                        name);
}

int files_check_runs(struct check *k)
{
        return run_each_name(k->conv, check_run, k, k->err);
}
