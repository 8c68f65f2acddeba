/*
 * members.c - looking up members of the table in members.h.
 *
 * Every append looks up the members of each message here, so a lookup must be cheap: most keys
 * differ from most names in their length or first byte.
 */
#include "model/members.h"

#include <string.h>

static const struct {
        struct str name;
        unsigned rules;
} members[] = {
#define MEMBERS_ROW(id, name, rules) {STR(name), rules},
    MEMBERS(MEMBERS_ROW)
#undef MEMBERS_ROW
};

enum member members_find_name(struct str name)
{
        for (int i = 0; i < MEMBER_COUNT; i++)
                if (name.n == members[i].name.n && name.p[0] == members[i].name.p[0] &&
                    memcmp(name.p, members[i].name.p, name.n) == 0)
                        return (enum member)i;
        return MEMBER_COUNT;
}

enum member members_find(const struct json *j, json_ref key)
{
        if (!json_is_escaped(j, key))
                return members_find_name(json_inner(j, key));
        for (int i = 0; i < MEMBER_COUNT; i++)
                if (json_is_str(j, key, members[i].name))
                        return (enum member)i;
        return MEMBER_COUNT;
}

bool members_has(enum member member, unsigned rules)
{
        return member < MEMBER_COUNT && (members[member].rules & rules);
}

void members_list(unsigned rules, const char *names[MEMBER_COUNT + 1])
{
        size_t n = 0;
        for (int i = 0; i < MEMBER_COUNT; i++)
                if (members_has((enum member)i, rules))
                        names[n++] = members[i].name.p;
        names[n] = NULL;
}

const char *members_ending_name(enum call_ending ending)
{
        static const char *const names[ENDING_COUNT] = {
            [ENDING_DENIED] = "denied", [ENDING_INTERRUPTED] = "interrupted", [ENDING_CUT] = "cut"};
        return names[ending];
}
