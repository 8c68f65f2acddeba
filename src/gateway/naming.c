/*
 * naming.c - see naming.h
 */
#include "gateway/naming.h"

#include <ctype.h>
#include <string.h>

#include "base/limits.h"

#define NAME_MIN 8 /* a shorter one is not a session's id */

static bool is_name(char c)
{
        return isalnum((unsigned char)c) || c == '-';
}

/* user_HASH_account__session_UUID */
static struct str behind_session(struct str user)
{
        static const char mark[] = "session_";
        size_t m = sizeof mark - 1;
        for (size_t i = 0; i + m < user.n; i++) {
                if (memcmp(user.p + i, mark, m) != 0)
                        continue;
                size_t n = 0;
                while (i + m + n < user.n && is_name(user.p[i + m + n]))
                        n++;
                if (n >= NAME_MIN)
                        return str_span(user.p + i + m, n);
        }
        return (struct str){0};
}

void naming_put_session(const struct json *request, struct buf *out)
{
        struct buf user;
        struct json j;
        json_ref id = json_get(request, json_get(request, 0, "metadata"), "user_id");
        buf_init(&user, 4 * KIB);
        json_init(&j);
        if (json_string(request, id, &user, NULL) && !user.failed && user.n) {
                json_ref name = JSON_NONE;
                if (json_parse(&j, user.p, user.n, NULL, NULL) == 0)
                        name = json_get(&j, 0, "session_id");
                if (json_type(&j, name) == JSON_STRING)
                        json_string(&j, name, out, NULL);
                else
                        buf_put_str(out, behind_session(buf_str(&user)));
        }
        json_release(&j);
        buf_release(&user);
}

bool naming_is_side(const struct json *list)
{
        uint32_t n = json_count(list, 0);
        return n &&
               json_is(list, json_get(list, json_at(list, 0, n - 1), "type"), "compaction_trigger");
}

struct str naming_previous(const struct json *request)
{
        struct str id = json_inner(request, json_get(request, 0, "previous_response_id"));
        if (id.n == 0)
                id = json_inner(request,
                    json_get(request, json_get(request, 0, "thread"), "previous_message_id"));
        return id;
}

struct str naming_conversation(const struct json *request)
{
        json_ref c = json_get(request, 0, "conversation");
        if (json_type(request, c) == JSON_OBJECT)
                c = json_get(request, c, "id");
        return json_type(request, c) == JSON_STRING ? json_inner(request, c) : (struct str){0};
}
