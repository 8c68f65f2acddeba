/*
 * backend_bundle.c - which files a conversation has in a bundle, and their order. A name
 * that is not one of these is refused before anything is made of it.
 */
#include "store/backend.h"

#include <string.h>

#include "base/limits.h"

static const struct {
        const char *prefix;
        const char *suffix;
        bool exact; /* the prefix is all of it */
} GROUPS[] = {
    {"messages.jsonl", "", true},
    {"meta.json", "", true},
    {"runs/", ".jsonl", false},
    {"artifacts/manifest.jsonl", "", true},
    {"artifacts/parts/", "", false},
    {"artifacts/terminal/", "", false},
    {"artifacts/tool/", "", false},
    {"seal/checkpoints", "", true},
    {"seal/leaves", "", true},
    {"transcript.md", "", true},
};
#define GROUP_COUNT (sizeof GROUPS / sizeof *GROUPS)

/* Letters, digits and what names of outputs have; no path, and nothing hidden. */
static bool is_plain_file(struct str s)
{
        if (s.n == 0 || s.n > 100 || s.p[0] == '.')
                return false;
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];
                if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
                    c != '_' && c != '-' && c != '.' && c != '~')
                        return false;
        }
        return true;
}

static size_t group_of(const char *name)
{
        size_t n = strlen(name);
        for (size_t i = 0; i < GROUP_COUNT; i++) {
                size_t prefix = strlen(GROUPS[i].prefix), suffix = strlen(GROUPS[i].suffix);
                if (GROUPS[i].exact && strcmp(name, GROUPS[i].prefix) == 0)
                        return i;
                if (!GROUPS[i].exact && n > prefix + suffix &&
                    strncmp(name, GROUPS[i].prefix, prefix) == 0 &&
                    strcmp(name + n - suffix, GROUPS[i].suffix) == 0 &&
                    is_plain_file(str_span(name + prefix, n - prefix)))
                        return i;
        }
        return GROUP_COUNT;
}

bool backend_bundle_is_name(const char *name)
{
        return group_of(name) < GROUP_COUNT;
}

int backend_bundle_compare(const char *a, const char *b)
{
        size_t x = group_of(a), y = group_of(b);
        return x != y ? (x < y ? -1 : 1) : strcmp(a, b);
}
