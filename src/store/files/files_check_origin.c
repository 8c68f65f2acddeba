/*
 * files_check_origin.c - what a fork says of where it came from, in meta.json (check.h).
 *
 * `origin` has the last record that was taken, and which records up to there were lost by then
 * (fork.c). Those are no damage of the fork; later losses are. Forks of earlier versions do not
 * list losses: for them, a tombstone that is older than the fork was copied from the origin.
 */
#include "store/files/files_check_work.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"

static void read_lost(struct check_origin *o, const struct json *j, json_ref lost)
{
        size_t n = json_count(j, lost);
        o->listed = true;
        o->lost = calloc(n + 1, sizeof *o->lost);
        for (json_ref e = json_child(j, lost); o->lost && e != JSON_NONE;
             e = json_next(j, lost, e)) {
                json_ref first = json_child(j, e);
                struct check_span *s = &o->lost[o->lost_count];
                o->lost_count += json_type(j, e) == JSON_ARRAY && json_count(j, e) == 2 &&
                                 json_u64(j, first, &s->first) &&
                                 json_u64(j, json_next(j, e, first), &s->last);
        }
}

static const struct check_origin *origin_of(struct check *k)
{
        struct check_origin *o = &k->origin;
        char *text = NULL;
        size_t n = 0;
        struct json j;
        if (o->read)
                return o;
        o->read = true;
        if (fs_slurp(k->fs, k->conv->dir, "meta.json", META_MAX, &text, &n))
                return o;
        json_init(&j);
        if (json_parse(&j, text, n, NULL, NULL) == 0) {
                json_ref origin = json_get(&j, 0, "origin");
                json_ref lost = json_get(&j, origin, "lost");
                json_u64(&j, json_get(&j, origin, "seq"), &o->seq);
                if (json_type(&j, lost) == JSON_ARRAY)
                        read_lost(o, &j, lost);
                char *at = json_dup_string(&j, json_get(&j, 0, "createdAt"));
                if (at)
                        time_parse(at, strlen(at), &o->created);
                free(at);
        }
        json_release(&j);
        free(text);
        return o;
}

uint64_t files_check_forked_seq(struct check *k)
{
        return origin_of(k)->seq;
}

bool files_check_lost_before(struct check *k, const struct record *rec)
{
        const struct check_origin *o = origin_of(k);
        int64_t at;
        if (rec->seq > o->seq)
                return false;
        for (size_t i = 0; i < o->lost_count; i++)
                if (rec->seq >= o->lost[i].first && rec->seq <= o->lost[i].last)
                        return true;
        return !o->listed && time_parse(rec->at.p, rec->at.n, &at) && at <= o->created;
}

void files_check_origin_release(struct check *k)
{
        free(k->origin.lost);
        k->origin = (struct check_origin){0};
}
