/* title.c - see title.h */
#include "base/title.h"

char *title_dup(const struct json *j, json_ref meta)
{
        struct buf b;
        buf_init(&b, 0);
        bool is = json_string(j, json_get(j, meta, "title"), &b, NULL);
        for (size_t i = 0; i < b.n; i++)
                if (b.p[i] == '\0')
                        b.p[i] = ' ';
        char *z = is ? buf_take(&b, NULL) : NULL;
        buf_release(&b);
        return z;
}
