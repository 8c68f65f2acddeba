/*
 * otel_send.c - the thread that sends runs to a collector (otel.h).
 *
 * The list in memory has the runs that this process knows. The folder otlp/ has the runs that must
 * survive the process: a run is added before its first request to the model, and stays until the
 * collector has it. No error is returned to a run: if a run cannot be noted or sent, this is tried
 * again, with pauses that grow to a minute.
 */
#include "otel/otel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/json_keys.h"
#include "base/limits.h"
#include "base/wait.h"
#include "net/transfer.h"

#define FOLDER "otlp"
#define SUFFIX "/v1/traces"
#define HEADERS_MAX 16
#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 60000
#define LATER_MS 5000     /* time until a run that another process holds is checked again */
#define ANSWER_MS 10000   /* time limit for the collector's answer */
#define WAITING_MAX 10000 /* number of runs in memory; the others are only in the folder */
#define YOUNG_MS 60000    /* up to this age, the beginning of a run may not be stored yet */

struct waiting {
        struct waiting *next;
        char *project;
        char *run;
        bool ended;
        bool noted;    /* the run has its file */
        int64_t later; /* do not try before this time, in monotonic ms */
};

struct otel {
        struct steno_store *store;
        char *url;
        char *headers[HEADERS_MAX + 2]; /* "Name: value" */
        struct otel_about about;
        int dir; /* the folder otlp/, or negative */
        struct transfer_pool *pool;
        struct steno_stop *stop;
        pthread_t thread;
        bool running;
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        struct waiting *list; /* protected by the mutex */
        size_t count;
        bool more; /* the folder has runs that are not in the list */
        bool closing;
        bool busy; /* the thread is sending */
};

/* ---- configuration ---- */

static int read_headers(struct otel *x, const struct json *j, json_ref headers,
    const char *const *env, struct steno_error *err)
{
        size_t n = 0;
        x->headers[n++] = strdup("Content-Type: application/json");
        for (json_ref k = json_child(j, headers); k != JSON_NONE;
             k = json_next_key(j, headers, k)) {
                char *name = json_dup_string(j, k);
                char *value = json_dup_string(j, json_value(j, k));
                const char *said = value;
                bool legal = name && value && *name && !strpbrk(name, ": \r\n");
                if (legal && strncmp(value, "env:", 4) == 0)
                        said = env_get(env, value + 4);
                legal = legal && said && !strpbrk(said, "\r\n") && n <= HEADERS_MAX;
                if (legal && asprintf(&x->headers[n], "%s: %s", name, said) >= 0)
                        n++;
                free(name);
                free(value);
                if (!legal)
                        return error_set(err, STENO_EINVAL,
                            "otlp: the values of \"headers\" must be strings, or env:NAME of a "
                            "variable that is set");
        }
        return 0;
}

static int read_config(struct otel *x, const struct otel_options *opt, struct steno_error *err)
{
        static const char *const KNOWN[] = {"endpoint", "headers", "content", NULL};
        struct json j;
        char *endpoint = NULL;
        json_init(&j);
        int rc = json_parse(&j, opt->config, strlen(opt->config), NULL, err);
        if (rc == 0)
                rc = json_keys_check(&j, 0, KNOWN, "otlp", err);
        if (rc == 0)
                endpoint = json_dup_string(&j, json_get(&j, 0, "endpoint"));
        if (rc == 0 && (!endpoint || (strncmp(endpoint, "http://", 7) != 0 &&
                                         strncmp(endpoint, "https://", 8) != 0)))
                rc = error_set(err, STENO_EINVAL,
                    "otlp: \"endpoint\" must be the address of a collector, as "
                    "http://127.0.0.1:4318");
        if (rc == 0) {
                size_t n = strlen(endpoint);
                while (n && endpoint[n - 1] == '/')
                        n--;
                bool whole = n > strlen(SUFFIX) &&
                             memcmp(endpoint + n - strlen(SUFFIX), SUFFIX, strlen(SUFFIX)) == 0;
                if (asprintf(&x->url, "%.*s%s", (int)n, endpoint, whole ? "" : SUFFIX) < 0) {
                        x->url = NULL;
                        rc = error_nomem(err);
                }
        }
        json_ref content = json_get(&j, 0, "content");
        enum json_type type = json_type(&j, content);
        if (rc == 0 && content != JSON_NONE && type != JSON_TRUE && type != JSON_FALSE)
                rc = error_set(err, STENO_EINVAL, "otlp: \"content\" must be true or false");
        x->about.content = type == JSON_TRUE;
        x->about.provider = strdup(opt->provider ? opt->provider : "openai");
        if (rc == 0)
                rc = read_headers(x, &j, json_get(&j, 0, "headers"), opt->env, err);
        free(endpoint);
        json_release(&j);
        return rc;
}

/* ---- the folder ---- */

/* Makes the file appear with its whole content, so that a server that is killed here leaves no
 * incomplete file. */
static bool write_note(struct otel *x, const char *name, struct str text)
{
        const struct fs *fs = fs_real();
        char tmp[PLAIN_NAME_MAX + 6];
        snprintf(tmp, sizeof tmp, ".%s.tmp", name);
        /* There is no sync: after a power cut, the collector may lack a run that the store has. */
        int fd = fs->open(fs, x->dir, tmp, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0)
                return false;
        int rc = fs_write_all(fs, fd, text.p, text.n);
        fs->close(fs, fd);
        if (rc == 0)
                rc = fs->rename(fs, x->dir, tmp, x->dir, name);
        if (rc)
                fs->unlink(fs, x->dir, tmp, 0);
        return rc == 0;
}

static void note(struct otel *x, struct waiting *w)
{
        char name[PLAIN_NAME_MAX + 1];
        struct buf text;
        if (w->noted || x->dir < 0 || id_file_name(str_of(w->run), name))
                return;
        buf_init(&text, 0);
        struct jsonw j = jsonw_to(&text);
        jsonw_object(&j);
        jsonw_field_cstr(&j, "project", w->project);
        jsonw_field_cstr(&j, "run", w->run);
        jsonw_object_end(&j);
        w->noted = !text.failed && write_note(x, name, buf_str(&text));
        buf_release(&text);
}

static void forget(struct otel *x, const struct waiting *w)
{
        char name[PLAIN_NAME_MAX + 1];
        if (x->dir >= 0 && id_file_name(str_of(w->run), name) == 0)
                fs_real()->unlink(fs_real(), x->dir, name, 0);
}

static void waiting_free(struct waiting *w)
{
        free(w->project);
        free(w->run);
        free(w);
}

static struct waiting *waiting_new(const char *project, const char *run)
{
        struct waiting *w = calloc(1, sizeof *w);
        if (!w)
                return NULL;
        w->project = strdup(project);
        w->run = strdup(run);
        if (w->project && w->run)
                return w;
        waiting_free(w);
        return NULL;
}

/* Finds a run in the list. The caller holds the mutex. */
static struct waiting *find(struct otel *x, const char *project, const char *run)
{
        for (struct waiting *w = x->list; w; w = w->next)
                if (strcmp(w->run, run) == 0 && strcmp(w->project, project) == 0)
                        return w;
        return NULL;
}

/* Adds a run to the list. The caller holds the mutex. NULL: out of memory. */
static struct waiting *add(struct otel *x, const char *project, const char *run)
{
        struct waiting *w = find(x, project, run);
        if (w || !(w = waiting_new(project, run)))
                return w;
        w->next = x->list;
        x->list = w;
        x->count++;
        return w;
}

/* Adds a run that has a file but is not in the list: an earlier process left it, or the list had no
 * room. */
static void take_run(struct otel *x, const char *project, const char *run)
{
        pthread_mutex_lock(&x->mutex);
        if (x->count >= WAITING_MAX) {
                x->more = true;
        } else if (!find(x, project, run)) {
                struct waiting *w = add(x, project, run);
                if (w)
                        w->noted = w->ended = true;
        }
        pthread_mutex_unlock(&x->mutex);
}

static int take_file(void *ctx, const char *name, unsigned char type)
{
        struct otel *x = ctx;
        const struct fs *fs = fs_real();
        struct json j;
        char *text = NULL;
        char *project = NULL;
        char *run = NULL;
        size_t n = 0;
        bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        (void)type;
        if (dots || fs_slurp(fs, x->dir, name, 4 * KIB, &text, &n))
                return 0;
        json_init(&j);
        bool temporary = !id_is_file_name(str_of(name));
        int rc = json_parse(&j, text, n, NULL, NULL);
        if (rc == 0) {
                project = json_dup_string(&j, json_get(&j, 0, "project"));
                run = json_dup_string(&j, json_get(&j, 0, "run"));
        }
        /* The writer was killed, so the file is incomplete. If its writer is still alive, it
         * notices that the file is gone and writes it again. */
        if (temporary || rc == STENO_EPROTO)
                fs->unlink(fs, x->dir, name, 0);
        else if (project && run)
                take_run(x, project, run);
        free(project);
        free(run);
        json_release(&j);
        free(text);
        return 0;
}

static void open_folder(struct otel *x, const char *path)
{
        const struct fs *fs = fs_real();
        int root = path ? fs->open_root(fs, path, false) : -ENOENT;
        x->dir = root < 0 ? root : fs_open_dir(fs, root, FOLDER, true);
        if (root >= 0)
                fs->close(fs, root);
        if (x->dir >= 0)
                fs->list(fs, x->dir, take_file, x);
}

/* ---- sending ---- */

static int drop_answer(void *ctx, struct transfer *t, const char *p, size_t n)
{
        (void)ctx;
        (void)t;
        (void)p;
        (void)n;
        return 0;
}

enum outcome {
        SENT,    /* it was sent, or it can never be sent */
        LATER,   /* the run is still running in some process */
        NOT_NOW, /* the collector does not accept it */
};

static enum outcome post(struct otel *x, struct str body)
{
        struct transfer t = {.pool = x->pool,
            .url = x->url,
            .headers = (const char *const *)x->headers,
            .body = body,
            .connect_ms = ANSWER_MS,
            .idle_ms = ANSWER_MS,
            .stop = x->stop,
            .data = drop_answer};
        if (transfer_run(&t, NULL))
                return NOT_NOW;
        if (t.status >= 200 && t.status < 300)
                return SENT;
        /* These answers are about the request itself, so they will not change. Other answers may
         * change when the user corrects the address or the credentials. */
        bool final = t.status == 400 || t.status == 413 || t.status == 415 || t.status == 422;
        return final ? SENT : NOT_NOW;
}

static int64_t age_ms(const char *run)
{
        return env_real()->now(env_real()) - id_time(str_of(run));
}

static enum outcome send_run(struct otel *x, const struct waiting *w)
{
        struct steno_error err = {0};
        struct buf body;
        enum outcome is = LATER;
        buf_init(&body, 0);
        int rc = otel_spans_put(x->store, w->project, w->run, &x->about, &body, &err);
        if (rc == 0)
                is = post(x, buf_str(&body));
        else if (rc == STENO_EINVAL || (rc == STENO_ENOTFOUND && age_ms(w->run) > YOUNG_MS))
                is = SENT; /* the run was removed, or never began */
        buf_release(&body);
        return is;
}

/* Returns a run that can be sent now; NULL: none. The caller holds the mutex. */
static struct waiting *next_ready(struct otel *x, int64_t now)
{
        struct waiting *ready = NULL;
        for (struct waiting *w = x->list; w; w = w->next)
                if (w->ended && w->later <= now)
                        ready = w; /* the oldest is last in the list */
        return ready;
}

/* Notes the runs that could not be noted at first, for example because the disk was full. The
 * caller holds the mutex. */
static void note_all(struct otel *x)
{
        for (struct waiting *w = x->list; w; w = w->next)
                note(x, w);
}

/* Removes a run from the list. The caller holds the mutex. */
static void take_out(struct otel *x, struct waiting *gone)
{
        for (struct waiting **at = &x->list; *at; at = &(*at)->next) {
                if (*at == gone) {
                        *at = gone->next;
                        x->count--;
                        break;
                }
        }
        waiting_free(gone);
}

/* Removes runs from the list that it has no room for; their files stay in the folder. The caller
 * holds the mutex. */
static void shed(struct otel *x)
{
        for (struct waiting *w = x->list, *next; w && x->count > WAITING_MAX; w = next) {
                next = w->next;
                if (w->ended && (w->noted || x->dir < 0)) {
                        x->more = true;
                        take_out(x, w);
                }
        }
}

/* Reads runs from the folder when the list has room again. The caller holds the mutex, which is
 * released while files are read. */
static void refill(struct otel *x)
{
        if (!x->more || x->dir < 0 || x->count > WAITING_MAX / 2)
                return;
        x->more = false;
        pthread_mutex_unlock(&x->mutex);
        fs_real()->list(fs_real(), x->dir, take_file, x);
        pthread_mutex_lock(&x->mutex);
}

static void *run(void *arg)
{
        struct otel *x = arg;
        int64_t pause = PAUSE_MIN_MS;
        pthread_mutex_lock(&x->mutex);
        while (!steno_stop_requested(x->stop)) {
                note_all(x);
                shed(x);
                refill(x);
                struct waiting *w = next_ready(x, time_monotonic_ms());
                x->busy = w != NULL;
                if (!w) {
                        pthread_cond_broadcast(&x->changed);
                        if (x->closing)
                                break;
                        wait_for(&x->changed, &x->mutex, PAUSE_MIN_MS);
                        continue;
                }
                pthread_mutex_unlock(&x->mutex);
                enum outcome is = send_run(x, w);
                if (is == SENT)
                        forget(x, w);
                pthread_mutex_lock(&x->mutex);
                if (is == SENT) {
                        take_out(x, w);
                        pause = PAUSE_MIN_MS;
                } else if (is == LATER) {
                        w->later = time_monotonic_ms() + LATER_MS;
                } else {
                        /* The collector is down for all of these runs. */
                        int64_t until = time_monotonic_ms() + pause;
                        for (struct waiting *o = x->list; o; o = o->next)
                                o->later = until;
                        pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
                }
        }
        x->busy = false;
        pthread_cond_broadcast(&x->changed);
        pthread_mutex_unlock(&x->mutex);
        return NULL;
}

/* ---- called by the server ---- */

void otel_began(struct otel *x, const char *project, const char *run_id)
{
        if (!x)
                return;
        pthread_mutex_lock(&x->mutex);
        struct waiting *w = add(x, project, run_id);
        if (w)
                note(x, w);
        pthread_cond_broadcast(&x->changed);
        pthread_mutex_unlock(&x->mutex);
}

void otel_ended(struct otel *x, const char *project, const char *run_id)
{
        if (!x)
                return;
        pthread_mutex_lock(&x->mutex);
        struct waiting *w = add(x, project, run_id);
        if (w) {
                note(x, w);
                w->ended = true;
        }
        pthread_cond_broadcast(&x->changed);
        pthread_mutex_unlock(&x->mutex);
}

static void otel_release(struct otel *x)
{
        const struct fs *fs = fs_real();
        for (struct waiting *w = x->list, *next; w; w = next) {
                next = w->next;
                waiting_free(w);
        }
        if (x->dir >= 0)
                fs->close(fs, x->dir);
        transfer_pool_free(x->pool);
        steno_stop_free(x->stop);
        for (size_t i = 0; i < sizeof x->headers / sizeof *x->headers; i++)
                free(x->headers[i]);
        free((char *)x->about.provider);
        free(x->url);
        pthread_mutex_destroy(&x->mutex);
        pthread_cond_destroy(&x->changed);
        free(x);
}

int otel_new(const struct otel_options *opt, struct otel **out, struct steno_error *err)
{
        struct otel *x = calloc(1, sizeof *x);
        if (!x)
                return error_nomem(err);
        x->store = opt->store;
        x->dir = -1;
        pthread_mutex_init(&x->mutex, NULL);
        wait_init(&x->changed);
        int rc = read_config(x, opt, err);
        if (rc == 0)
                rc = steno_stop_new(&x->stop, err);
        if (rc == 0 && !(x->pool = transfer_pool_new(err)))
                rc = err && err->code ? err->code : STENO_ENOMEM;
        if (rc == 0)
                open_folder(x, opt->path);
        if (rc == 0 && pthread_create(&x->thread, NULL, run, x))
                rc = error_nomem(err);
        x->running = rc == 0;
        if (rc) {
                otel_release(x);
                return rc;
        }
        *out = x;
        return 0;
}

void otel_free(struct otel *x, int ms)
{
        if (!x)
                return;
        int64_t until = time_monotonic_ms() + ms;
        pthread_mutex_lock(&x->mutex);
        x->closing = true;
        pthread_cond_broadcast(&x->changed);
        for (int64_t left = ms; left > 0; left = until - time_monotonic_ms()) {
                if (!x->busy && !next_ready(x, time_monotonic_ms()))
                        break;
                wait_for(&x->changed, &x->mutex, (int)left);
        }
        pthread_mutex_unlock(&x->mutex);
        steno_stop_request(x->stop);
        pthread_mutex_lock(&x->mutex);
        pthread_cond_broadcast(&x->changed);
        pthread_mutex_unlock(&x->mutex);
        pthread_join(x->thread, NULL);
        otel_release(x);
}
