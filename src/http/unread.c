/*
 * unread.c - see unread.h.
 */
#include <string.h>

#include "base/hash.h"
#include "http/server_core.h"
#include "http/unread.h"

/* Has it no token of a whole project? Its answers never take the memory of the owners'. */
static bool is_guest(const struct request *r)
{
        return !r->who.known || r->who.session[0];
}

static atomic_ullong *share_of(struct unread *all, const struct request *r)
{
        const char *id = r->who.token_id;
        return &all->shares[hash_64(id, strlen(id)) % SERVER_REPLY_SHARES];
}

void unread_release(struct request *r)
{
        struct unread *all = &r->server->unread[is_guest(r)];
        if (!r->reply_counted)
                return;
        atomic_fetch_sub(&all->all, r->reply_counted);
        atomic_fetch_sub(share_of(all, r), r->reply_counted);
        r->reply_counted = 0;
}

static bool fits(uint64_t held, uint64_t size, uint64_t most)
{
        return held == 0 || held + size <= most;
}

void unread_hold(struct request *r)
{
        struct unread *all = &r->server->unread[is_guest(r)];
        uint64_t most = is_guest(r) ? SERVER_VISITOR_REPLIES_MAX : SERVER_REPLIES_MAX;
        uint64_t size = r->reply.cap;
        if (r->stream || r->passing || r->file)
                return; /* they hold what they send themselves */
        r->reply_counted = size;
        bool all_fit = fits(atomic_fetch_add(&all->all, size), size, most);
        bool own_fit =
            fits(atomic_fetch_add(share_of(all, r), size), size, most / SERVER_REPLY_SHARE);
        if ((all_fit && own_fit) || size <= SERVER_KEPT_REPLY || strcmp(r->method, "GET") != 0)
                return;
        unread_release(r);
        buf_release(&r->reply);
        r->header_count = 0; /* they were about that answer */
        request_header_out(r, "Retry-After", "1");
        request_error(r, 503, "busy", "too many answers are waiting to be read");
}
