/*
 * own_search.c - GET /api/search?q&limit&cursor: words in everything of the token's project.
 */
#include "routes/handlers.h"

#define SEARCH_MAX 200

void own_search(struct request *r)
{
        struct steno_search_options opt = {
            .size = sizeof opt, .project = r->who.project, .catch_up_ms = -1};
        /* Requests do not index: the server has a thread for that. */
        struct steno_error err = {0};
        char *json = NULL;
        opt.query = request_query(r, "q");
        opt.cursor = request_query(r, "cursor");
        uint64_t limit;
        if (!request_number(r, "limit", 20, 1, SEARCH_MAX, &limit))
                return;
        opt.limit = (uint32_t)limit;
        if (!opt.query || !*opt.query) {
                request_error(r, 400, "invalid", "q has the words to look for");
                return;
        }
        int rc = steno_search(r->store, &opt, &json, &err);
        request_reply_made(r, rc, json, &err);
}
