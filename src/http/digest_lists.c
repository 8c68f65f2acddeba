/*
 * digest_lists.c - the lists of a digest that grow while its log is read: tools, models and days.
 */
#include <stdlib.h>
#include <string.h>

#include "http/digest_reading.h"

#define DAYS_MAX 400 /* the newest */
#define DAY_MS 86400000

/* Room for one more in a list of `count`, whose room is always a power of two. */
void *digest_grow(void *list, size_t count, size_t size)
{
        if (count && (count & (count - 1)))
                return list;
        return realloc(list, (count ? count * 2 : 1) * size);
}

char *digest_copy(struct str s, size_t max)
{
        size_t n = s.n < max ? s.n : max;
        while (n && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
                n--;
        return strndup(s.n ? s.p : "", n);
}

/* The entry of that name, made if there is none; DIGEST_COUNTS_MAX when there is no room. */
size_t digest_count_of(
    struct digest_entry *e, struct digest_count **list, size_t *count, struct str name)
{
        char *text = digest_copy(name, DIGEST_NAME_BYTES);
        for (size_t i = 0; text && i < *count; i++) {
                if (strcmp((*list)[i].name, text) == 0) {
                        free(text);
                        return i;
                }
        }
        struct digest_count *grown =
            text && *count < DIGEST_COUNTS_MAX ? digest_grow(*list, *count, sizeof **list) : NULL;
        if (!grown) {
                e->failed = e->failed || !text || *count < DIGEST_COUNTS_MAX;
                free(text);
                return DIGEST_COUNTS_MAX;
        }
        *list = grown;
        grown[*count] = (struct digest_count){.name = text};
        return (*count)++;
}

struct digest_day *digest_day_of(struct digest_entry *e, int64_t at)
{
        struct digest *d = &e->d;
        int64_t day = at / DAY_MS;
        for (size_t i = d->day_count; i > 0; i--)
                if (d->days[i - 1].day == day)
                        return &d->days[i - 1];
        if (d->day_count == DAYS_MAX)
                memmove(d->days, d->days + 1, --d->day_count * sizeof *d->days);
        else {
                struct digest_day *grown = digest_grow(d->days, d->day_count, sizeof *d->days);
                if (!grown) {
                        e->failed = true;
                        return NULL;
                }
                d->days = grown;
        }
        d->days[d->day_count] = (struct digest_day){.day = day};
        return &d->days[d->day_count++];
}
