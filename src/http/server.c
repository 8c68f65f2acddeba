/* server.c - see server.h: starting, ticking, stopping. */
#include "http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/named_file.h"
#include "base/state_folder.h"
#include "base/wait.h"
#include "gateway/gateway.h"
#include "otel/otel.h"
#include "http/address.h"
#include "http/buckets.h"
#include "http/connections.h"
#include "http/runner.h"
#include "http/server_core.h"
#include "http/digests.h"
#include "http/waiting.h"
#include "http/follow.h"
#include "http/indexer.h"
#include "http/http.h"
#include "http/http_limits.h"
#include "http/passing.h"
#include "http/pledges.h"
#include "http/replies.h"
#include "http/tails.h"
#include "http/watches.h"

/* ---- where to listen ---- */

static int parse_listen(
    struct server *s, const char *listen, union address *a, struct steno_error *err)
{
        const char *colon = strrchr(listen, ':');
        char *end = NULL;
        unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 70000;
        if (!colon || !end || *end || port > 65535)
                return error_set(
                    err, STENO_EINVAL, "--listen takes ADDRESS:PORT, not \"%.60s\"", listen);
        s->host = strndup(listen, (size_t)(colon - listen));
        if (!s->host)
                return error_nomem(err);
        s->port = (int)port;
        memset(a, 0, sizeof *a);
        char bare[64];
        size_t n = strlen(s->host);
        bool v6 = s->host[0] == '[' && n > 2 && n < sizeof bare;
        snprintf(bare, sizeof bare, "%.*s", v6 ? (int)n - 2 : (int)n, s->host + (v6 ? 1 : 0));
        if (strcmp(bare, "localhost") == 0)
                snprintf(bare, sizeof bare, "127.0.0.1");
        if (inet_pton(AF_INET, bare, &a->v4.sin_addr) == 1) {
                a->v4.sin_family = AF_INET;
                a->v4.sin_port = htons((uint16_t)port);
        } else if (inet_pton(AF_INET6, bare, &a->v6.sin6_addr) == 1) {
                a->v6.sin6_family = AF_INET6;
                a->v6.sin6_port = htons((uint16_t)port);
        } else {
                return error_set(err, STENO_EINVAL, "\"%.60s\" is not an address", s->host);
        }
        return 0;
}

static bool is_loopback(const union address *a)
{
        if (a->any.sa_family == AF_INET)
                return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
        return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

/* Names that may stand in Host: loopback's, the address we listen on, and what was added. */
static int allow_hosts(struct server *s, const char *const *more, struct steno_error *err)
{
        static const char *const LOOPBACK[] = {"localhost", "127.0.0.1", "[::1]"};
        size_t n = 0, extra = 0;
        while (more && more[extra])
                extra++;
        s->hosts = calloc(extra + 5, sizeof *s->hosts);
        if (!s->hosts)
                return error_nomem(err);
        for (size_t i = 0; i < 3; i++)
                s->hosts[n++] = strdup(LOOPBACK[i]);
        s->hosts[n++] = strdup(s->host);
        for (size_t i = 0; i < extra; i++)
                s->hosts[n++] = strdup(more[i]);
        for (size_t i = 0; i < n; i++)
                if (!s->hosts[i])
                        return error_nomem(err);
        return 0;
}

/* ---- the ticker ---- */

static void log_quarantined(struct server *s, uint64_t *before)
{
        uint64_t now = steno_quarantined(s->store);
        if (now > *before && s->log)
                fprintf(s->log, "{\"quarantined\":%llu}\n", (unsigned long long)(now - *before));
        *before = now;
}

static bool is_valid_token(void *ctx, const char *token_id)
{
        return strcmp(token_id, "record") == 0 || identities_valid(ctx, token_id);
}

static void revoke_turns(struct server *s)
{
        uint64_t version = identities_version(s->identities);
        if (version == s->tokens_version)
                return;
        s->tokens_version = version;
        gateway_revoke(s->gateway, is_valid_token, s->identities);
}

static void *tick(void *arg)
{
        struct server *s = arg;
        uint64_t quarantined = 0;
        while (!atomic_load(&s->stopping)) {
                wait_sleep(SERVER_TICK_MS);
                streams_tick(s->streams);
                passing_tick(s);
                connections_reap(s->connections);
                if (!s->store)
                        continue;
                identities_refresh(s->identities);
                revoke_turns(s);
                log_quarantined(s, &quarantined);
        }
        return NULL;
}

/* ---- life ---- */

static void raise_descriptor_limit(void)
{
        struct rlimit lim;
        if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < lim.rlim_max) {
                lim.rlim_cur = lim.rlim_max;
                setrlimit(RLIMIT_NOFILE, &lim);
        }
}

/* Otherwise the memory of an answer of a few hundred kilobytes would go back to the system after it
 * was sent, and each page of the next one would cost a page fault. */
static void keep_memory(void)
{
#ifdef __GLIBC__
        mallopt(M_MMAP_THRESHOLD, SERVER_KEPT_MEMORY);
        mallopt(M_TRIM_THRESHOLD, SERVER_KEPT_MEMORY);
        mallopt(M_ARENA_MAX, SERVER_HEAPS);
#endif
}

static int open_gateway(struct server *s, const struct server_options *opt, struct steno_error *err)
{
        char *path = NULL;
        int rc = state_folder(opt->store, &path, err);
        struct gateway_options g = {.store = s->store,
            .path = path,
            .upstreams = opt->upstreams,
            .responses = opt->responses,
            .env = opt->env};
        if (rc == 0)
                rc = gateway_new(&g, &s->gateway, err);
        s->tally = opt->tally;
        if (rc == 0 && opt->lent_token)
                identities_lend(s->identities, opt->lent_token, opt->lent_project);
        free(path);
        return rc;
}

#define OTEL_LAST_MS 1000 /* for runs that have just ended; the next start sends the others */

static int open_otel(struct server *s, const struct server_options *opt, struct steno_error *err)
{
        char *path = NULL;
        if (!opt->otlp)
                return 0;
        int rc = state_folder(opt->store, &path, err);
        struct otel_options o = {.store = s->store,
            .path = path,
            .config = opt->otlp,
            .provider = opt->session ? opt->session->config.provider : NULL,
            .env = opt->env};
        if (rc == 0)
                rc = otel_new(&o, &s->otel, err);
        free(path);
        return rc;
}

static int open_log(struct server *s, const char *path, struct steno_error *err)
{
        if (path && !*path)
                return 0;
        int fd = path ? named_file_append(path) : -1;
        if (path && fd < 0)
                return error_sys(err, fd, "opening the log %.100s", path);
        s->log = path ? fdopen(fd, "a") : stderr;
        if (!s->log) {
                close(fd);
                return error_nomem(err);
        }
        setvbuf(s->log, NULL, _IOLBF, 0);
        return 0;
}

static int prepare_store(
    struct server *s, const struct server_options *opt, struct steno_error *err)
{
        struct steno_open_options open = {.size = sizeof open, .seal_key = opt->seal_key};
        int rc = steno_open(opt->store, &open, &s->store, err);
        if (rc == 0)
                rc = identities_open(s->store, &s->identities, err);
        if (rc == 0)
                rc = identities_signing_key(s->identities, s->signing_key, err);
        if (rc == 0)
                rc = open_gateway(s, opt, err);
        return rc ? rc : open_otel(s, opt, err);
}

static unsigned half_of_processors(void)
{
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        return n > 3 ? (unsigned)n / 2 : 1;
}

/* Each takes a descriptor, and the files of the store need some as well. */
static unsigned connections_allowed(void)
{
        struct rlimit files;
        if (getrlimit(RLIMIT_NOFILE, &files) != 0 ||
            files.rlim_cur / SERVER_FILES_SHARE > SERVER_CONNECTIONS_MAX / (SERVER_FILES_SHARE - 1))
                return SERVER_CONNECTIONS_MAX;
        return (unsigned)(files.rlim_cur - files.rlim_cur / SERVER_FILES_SHARE);
}

static int prepare(struct server *s, const struct server_options *opt, struct steno_error *err)
{
        s->fixtures = opt->fixtures;
        int rc = open_log(s, opt->log_path, err);
        if (rc == 0 && !s->fixtures)
                rc = prepare_store(s, opt, err);
        if (rc)
                return rc;
        s->connections = connections_new(connections_allowed());
        s->unread = unread_new();
        s->workers = workers_new(SERVER_WORKERS, SERVER_QUEUE_MAX);
        s->turns = workers_new(SERVER_TURNS_MAX, 0);
        s->urgent = workers_new(SERVER_URGENT_WORKERS, SERVER_QUEUE_MAX);
        s->heavy = workers_new(half_of_processors(), SERVER_QUEUE_MAX);
        if (s->heavy)
                workers_give_way(s->heavy);
        s->streams = streams_new(s);
        s->follow = follow_new(s);
        s->tails = tails_new();
        s->watches = watches_new(s);
        s->digests = digests_new();
        s->waiting = waiting_new(s);
        s->replies = replies_new();
        s->buckets = buckets_new();
        s->visitor_reads = buckets_new();
        s->pledges = pledges_new();
        if (opt->session)
                s->chat = runner_new(s, opt->session);
        if (opt->public_project)
                s->public_project = strdup(opt->public_project);
        if (opt->script)
                s->script = strdup(opt->script);
        if (!s->connections || !s->unread || !s->workers || !s->turns || !s->urgent || !s->heavy ||
            !s->streams || !s->follow || !s->tails || !s->watches || !s->digests || !s->waiting ||
            !s->replies || !s->buckets || !s->visitor_reads || !s->pledges ||
            (opt->public_project && !s->public_project) || (opt->session && !s->chat) ||
            (opt->script && !s->script))
                return error_nomem(err);
        return 0;
}

/* Completes runs that died with an earlier server, or with another one that shares the store. If a
 * client opens such a conversation before, its run is completed then. */
static void *recover(void *arg)
{
        struct server *s = arg;
        while (!atomic_load(&s->stopping)) {
                steno_recover(s->store, NULL, NULL);
                for (int ms = 0; ms < SERVER_RECOVER_MS && !atomic_load(&s->stopping);
                     ms += SERVER_TICK_MS)
                        wait_sleep(SERVER_TICK_MS);
        }
        return NULL;
}

static int put_address(struct server *s, const char *token)
{
        if (s->fixtures)
                return asprintf(&s->address, "http://%s:%d/mcp", s->host, s->port);
        return asprintf(&s->address, "http://%s:%d/#token=%s", s->host, s->port, token);
}

int server_start(const struct server_options *opt, struct server **out, struct steno_error *err)
{
        struct server *s = calloc(1, sizeof *s);
        union address address;
        char token[TOKEN_TEXT];
        if (!s)
                return error_nomem(err);
        pthread_mutex_init(&s->passing_mutex, NULL);
        raise_descriptor_limit();
        keep_memory();
        int rc = parse_listen(s, opt->listen, &address, err);
        if (rc == 0 && !is_loopback(&address) && !opt->allow_remote)
                rc = error_set(err, STENO_EDENIED,
                    "%s is not a loopback address; use --allow-remote if you want to listen there",
                    s->host);
        if (rc == 0)
                rc = allow_hosts(s, opt->hosts, err);
        if (rc == 0)
                rc = prepare(s, opt, err);
        if (rc == 0 && !s->fixtures)
                rc = identities_own(s->identities, token, err);
        if (rc == 0)
                rc = http_start(s, &address.any, err);
        if (rc == 0) {
                s->ticking = pthread_create(&s->ticker, NULL, tick, s) == 0;
                if (s->store) {
                        s->recovering = pthread_create(&s->recoverer, NULL, recover, s) == 0;
                        s->indexer = indexer_start(s->store, s->digests);
                }
                if (!s->ticking || (s->store && (!s->recovering || !s->indexer)) ||
                    put_address(s, token) < 0)
                        rc = error_nomem(err);
        }
        if (rc) {
                server_stop(s);
                return rc;
        }
        *out = s;
        return 0;
}

const char *server_address(const struct server *s)
{
        return s->address;
}

int server_port(const struct server *s)
{
        return s->port;
}

/* Waits for the requests that were accepted, up to a limit. */
static void wait_for_requests(struct server *s)
{
        for (int i = 0; i < SERVER_DRAIN_MS / 20 && atomic_load(&s->under_way); i++)
                wait_sleep(20);
}

void server_stop(struct server *s)
{
        if (!s)
                return;
        atomic_store(&s->stopping, true);
        if (s->daemon)
                http_quiesce(s);
        if (s->ticking)
                pthread_join(s->ticker, NULL);
        if (s->recovering)
                pthread_join(s->recoverer, NULL);
        indexer_stop(s->indexer);
        /* Runs are ended first, so that readers still get their last events. Requests and watches
         * that are under way ask for them until they end themselves. */
        runner_end(s->chat);
        otel_free(s->otel, OTEL_LAST_MS);
        s->otel = NULL;
        gateway_stop(s->gateway);
        if (s->follow)
                follow_stop(s->follow);
        tails_stop(s->tails);
        watches_stop(s->watches);
        if (s->streams)
                streams_drain(s->streams);
        if (s->daemon)
                wait_for_requests(s);
        /* The daemon ends when no request is with a worker, and may still ask for one till then. */
        workers_stop(s->workers);
        workers_stop(s->turns);
        workers_stop(s->urgent);
        workers_stop(s->heavy);
        http_stop(s);
        workers_free(s->workers);
        workers_free(s->turns);
        workers_free(s->urgent);
        workers_free(s->heavy);
        runner_free(s->chat);
        gateway_free(s->gateway, s->tally ? &s->tally->recorded : NULL,
            s->tally ? &s->tally->unrecorded : NULL);
        follow_free(s->follow);
        tails_free(s->tails);
        watches_free(s->watches);
        digests_free(s->digests);
        waiting_free(s->waiting);
        replies_free(s->replies);
        buckets_free(s->buckets);
        buckets_free(s->visitor_reads);
        pledges_free(s->pledges);
        streams_free(s->streams);
        connections_free(s->connections);
        unread_free(s->unread);
        identities_close(s->identities);
        steno_close(s->store);
        if (s->log && s->log != stderr)
                fclose(s->log);
        for (char **h = s->hosts; h && *h; h++)
                free(*h);
        free(s->hosts);
        free(s->public_project);
        free(s->script);
        free(s->address);
        free(s->host);
        pthread_mutex_destroy(&s->passing_mutex);
        free(s);
}
