/*
 * own_home.c - GET /api/home: what runs, what waits for a person, what failed lately, and what was
 * used, by day, tool and model.
 *
 * The conversations of the last days are summed up, the newest first and for a bounded time. Their
 * digests are kept (http/digests.h), so that the next request continues where this one ended;
 * `left` says that some are missing.
 */
#include "routes/handlers.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "http/digests.h"
#include "http/server_core.h"
#include "http/waiting.h"
#include "routes/own/own_digest.h"

#define DAY_MS 86400000
#define DAYS_MAX 90
#define HOME_MS 800
#define HOME_STEP 50
#define FAILED_SHOWN 8
#define NAMES_MAX 200

struct sum {
        char *name;
        struct digest_count count;
};

struct home {
        struct request *r;
        uint64_t days;
        int64_t today; /* day since 1970 */
        int64_t until; /* work stops here */
        struct digest_day day[DAYS_MAX];
        struct sum tools[NAMES_MAX], models[NAMES_MAX];
        size_t tool_count, model_count;
        struct buf running, failed; /* rows */
        struct jsonw running_w, failed_w;
        size_t failed_shown, failed_count, running_count, conversations;
        bool left;
};

static void add_count(struct sum *list, size_t *n, const struct digest_count *c)
{
        size_t i = 0;
        while (i < *n && strcmp(list[i].name, c->name) != 0)
                i++;
        if (i == *n) {
                char *name = *n < NAMES_MAX ? strdup(c->name) : NULL;
                if (!name)
                        return;
                list[(*n)++] = (struct sum){.name = name};
        }
        list[i].count.calls += c->calls;
        list[i].count.failed += c->failed;
        list[i].count.ms += c->ms;
        list[i].count.kept += c->kept;
        list[i].count.tokens.in += c->tokens.in;
        list[i].count.tokens.out += c->tokens.out;
        list[i].count.tokens.cached += c->tokens.cached;
}

static void add_digest(struct home *h, const struct digest *d)
{
        for (size_t i = 0; i < d->day_count; i++) {
                int64_t ago = h->today - d->days[i].day;
                if (ago < 0 || ago >= (int64_t)h->days)
                        continue;
                h->day[ago].turns += d->days[i].turns;
                h->day[ago].failed += d->days[i].failed;
        }
        for (size_t i = 0; i < d->tool_count; i++)
                add_count(h->tools, &h->tool_count, &d->tools[i]);
        for (size_t i = 0; i < d->model_count; i++)
                add_count(h->models, &h->model_count, &d->models[i]);
        h->left = h->left || !d->whole;
}

/* Sums up one conversation of the list; false: it is older than the days that are asked for. */
static bool add_item(struct home *h, const struct json *j, json_ref item)
{
        static const struct own_filter ALL = {0};
        struct request *r = h->r;
        struct str at = json_inner(j, json_get(j, item, "updatedAt"));
        const char *id = request_member(r, j, item, "id");
        const struct digest *d;
        int64_t ms = 0;
        enum own_row row;
        if (!time_parse(at.p, at.n, &ms) || h->today - ms / DAY_MS >= (int64_t)h->days)
                return false;
        if (!id)
                return true;
        int64_t left = h->until - http_now_ms();
        int rc = own_row_digest(r, j, item, id, left > 10 ? (int)left : 10, &d, NULL);
        uint64_t failed = 0;
        if (rc == 0 && d) {
                h->conversations++;
                add_digest(h, d);
                failed = d->failed;
                digests_close(r->server->digests, d);
        }
        if (failed && ++h->failed_count && h->failed_shown < FAILED_SHOWN) {
                own_row_put(r, j, item, &ALL, 1, &h->failed_w, &row, NULL);
                h->failed_shown += row == OWN_ROW_SHOWN;
        }
        if (waiting_state(r->server->waiting, r->who.project, id) != RUNNER_IDLE) {
                own_row_put(r, j, item, &ALL, 1, &h->running_w, &row, NULL);
                h->running_count += row == OWN_ROW_SHOWN;
        }
        return true;
}

static int add_all(struct home *h, struct steno_error *err)
{
        struct steno_list_options opt = {.size = sizeof opt, .limit = HOME_STEP};
        char *cursor = NULL;
        bool young = true;
        int rc = 0;
        do {
                struct json j;
                char *page = NULL;
                json_init(&j);
                opt.cursor = cursor;
                rc = steno_list(h->r->store, h->r->who.project, &opt, &page, err);
                if (rc == 0)
                        rc = json_parse(&j, page, strlen(page), NULL, err);
                json_ref items = json_get(&j, 0, "items");
                for (json_ref i = json_child(&j, items); rc == 0 && young && i != JSON_NONE;
                     i = json_next(&j, items, i))
                        young = add_item(h, &j, i);
                h->left = h->left || json_bool(&j, json_get(&j, 0, "catching_up"), false);
                free(cursor);
                cursor = rc ? NULL : json_dup_string(&j, json_get(&j, 0, "next_cursor"));
                json_release(&j);
                steno_free(page);
        } while (rc == 0 && cursor && young && http_now_ms() < h->until);
        h->left = h->left || (cursor && young);
        free(cursor);
        return rc;
}

static void put_sums(struct jsonw *w, const char *name, const struct sum *list, size_t n)
{
        jsonw_key(w, name);
        jsonw_array(w);
        for (size_t i = 0; i < n; i++) {
                jsonw_object(w);
                jsonw_field_cstr(w, "name", list[i].name);
                jsonw_field_u64(w, "calls", list[i].count.calls);
                jsonw_field_u64(w, "failed", list[i].count.failed);
                jsonw_field_u64(w, "ms", list[i].count.ms);
                jsonw_field_u64(w, "kept", list[i].count.kept);
                own_digest_put_tokens(w, "tokens", &list[i].count.tokens);
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

static void put_days(struct jsonw *w, const struct home *h)
{
        jsonw_key(w, "days");
        jsonw_array(w);
        for (uint64_t i = h->days; i > 0; i--) {
                char day[TIME_TEXT];
                time_format((h->today - (int64_t)i + 1) * DAY_MS, day);
                jsonw_object(w);
                jsonw_field_str(w, "day", str_span(day, 10));
                jsonw_field_u64(w, "turns", h->day[i - 1].turns);
                jsonw_field_u64(w, "failed", h->day[i - 1].failed);
                jsonw_object_end(w);
        }
        jsonw_array_end(w);
}

static void put_home(struct home *h)
{
        struct request *r = h->r;
        struct buf waiting;
        buf_init(&waiting, 0);
        waiting_put(r->server->waiting, r->who.project, &waiting);
        struct jsonw w = jsonw_to(&r->reply);
        jsonw_object(&w);
        jsonw_field_raw(&w, "waiting", buf_str(&waiting));
        jsonw_field_raw(&w, "running", buf_str(&h->running));
        jsonw_field_raw(&w, "failed", buf_str(&h->failed));
        jsonw_field_u64(&w, "failedCount", h->failed_count);
        jsonw_field_u64(&w, "conversations", h->conversations);
        put_days(&w, h);
        put_sums(&w, "models", h->models, h->model_count);
        put_sums(&w, "tools", h->tools, h->tool_count);
        own_digest_put_prices(&w, r);
        jsonw_field_bool(&w, "left", h->left);
        jsonw_object_end(&w);
        if (waiting.failed || h->running.failed || h->failed.failed)
                request_error(r, 503, "busy", "out of memory");
        else
                request_reply_json(r, 200);
        buf_release(&waiting);
}

static void home_free(struct home *h)
{
        for (size_t i = 0; i < h->tool_count; i++)
                free(h->tools[i].name);
        for (size_t i = 0; i < h->model_count; i++)
                free(h->models[i].name);
        buf_release(&h->running);
        buf_release(&h->failed);
        free(h);
}

void own_home(struct request *r)
{
        struct steno_error err = {0};
        uint64_t days;
        if (!request_number(r, "days", 14, 1, DAYS_MAX, &days))
                return;
        struct home *h = calloc(1, sizeof *h);
        if (!h) {
                request_error(r, 503, "busy", "out of memory");
                return;
        }
        h->r = r;
        h->days = days;
        h->today = env_real()->now(env_real()) / DAY_MS;
        h->until = http_now_ms() + HOME_MS;
        buf_init(&h->running, 0);
        buf_init(&h->failed, 0);
        h->running_w = jsonw_to(&h->running);
        h->failed_w = jsonw_to(&h->failed);
        jsonw_array(&h->running_w);
        jsonw_array(&h->failed_w);
        int rc = add_all(h, &err);
        jsonw_array_end(&h->running_w);
        jsonw_array_end(&h->failed_w);
        if (rc)
                request_failed(r, rc, &err);
        else
                put_home(h);
        home_free(h);
}
