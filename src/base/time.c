/*
 * time.c - milliseconds since 1970 as ISO 8601 text, and back. No time zones, no locale: dates
 * are reckoned with the proleptic Gregorian calendar.
 */
#include "base/env.h"

#include <string.h>
#include <time.h>

#define DAY_MS INT64_C(86400000)
#define YEAR_0_MS INT64_C(-62167219200000)    /* 0000-01-01T00:00:00.000Z */
#define YEAR_9999_MS INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

/* Days since 1970-01-01. Years begin in March here, so that the leap day comes last. */
static int64_t days_of(int64_t y, int m, int d)
{
        y -= m <= 2;
        int64_t era = (y >= 0 ? y : y - 399) / 400;
        int64_t yoe = y - era * 400;
        int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
        int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
        return era * 146097 + doe - 719468;
}

static void date_of(int64_t days, int *y, int *m, int *d)
{
        days += 719468;
        int64_t era = (days >= 0 ? days : days - 146096) / 146097;
        int64_t doe = days - era * 146097;
        int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
        int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        int64_t mp = (5 * doy + 2) / 153;
        *d = (int)(doy - (153 * mp + 2) / 5 + 1);
        *m = (int)(mp < 10 ? mp + 3 : mp - 9);
        *y = (int)(yoe + era * 400 + (*m <= 2));
}

/* Digits of `v`, the last one at `last`. By hand: every record has a time, and printf is slow. */
static void put_digits(char *last, unsigned v)
{
        for (; v; v /= 10)
                *last-- = (char)('0' + v % 10);
}

void time_format(int64_t ms, char out[TIME_TEXT])
{
        int y;
        int m;
        int d;

        /* Four digits of year are all the text has room for. */
        if (ms < YEAR_0_MS)
                ms = YEAR_0_MS;
        if (ms > YEAR_9999_MS)
                ms = YEAR_9999_MS;
        int64_t days = ms / DAY_MS;
        int64_t rest = ms % DAY_MS;
        if (rest < 0) {
                rest += DAY_MS;
                days--;
        }
        date_of(days, &y, &m, &d);
        unsigned r = (unsigned)rest;
        memcpy(out, "0000-00-00T00:00:00.000Z", TIME_TEXT);
        put_digits(out + 3, (unsigned)y);
        put_digits(out + 6, (unsigned)m);
        put_digits(out + 9, (unsigned)d);
        put_digits(out + 12, r / 3600000u);
        put_digits(out + 15, r / 60000u % 60u);
        put_digits(out + 18, r / 1000u % 60u);
        put_digits(out + 22, r % 1000u);
}

struct cursor {
        const char *p;
        const char *end;
};

/* Exactly `n` digits. */
static bool take_digits(struct cursor *c, int n, int *out)
{
        int v = 0;

        if (c->end - c->p < n)
                return false;
        for (int i = 0; i < n; i++) {
                if (c->p[i] < '0' || c->p[i] > '9')
                        return false;
                v = v * 10 + (c->p[i] - '0');
        }
        c->p += n;
        *out = v;
        return true;
}

static bool take_char(struct cursor *c, const char *any)
{
        if (c->p == c->end)
                return false;
        for (; *any; any++) {
                if (*c->p == *any) {
                        c->p++;
                        return true;
                }
        }
        return false;
}

static bool take_date(struct cursor *c, int64_t *ms)
{
        static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
        int y;
        int m;
        int d;

        if (!take_digits(c, 4, &y) || !take_char(c, "-") || !take_digits(c, 2, &m) ||
            !take_char(c, "-") || !take_digits(c, 2, &d))
                return false;
        if (m < 1 || m > 12 || d < 1)
                return false;
        bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
        if (d > lengths[m - 1] + (m == 2 && leap))
                return false;
        *ms = days_of(y, m, d) * DAY_MS;
        return true;
}

/* ".123456": what is finer than a millisecond is dropped. */
static bool take_fraction(struct cursor *c, int *ms)
{
        int scale = 100;
        int digit;
        int count = 0;

        *ms = 0;
        if (!take_char(c, ".,"))
                return true;
        while (take_digits(c, 1, &digit)) {
                *ms += digit * scale;
                scale /= 10;
                count++;
        }
        return count > 0;
}

static bool take_clock(struct cursor *c, int64_t *ms)
{
        int h;
        int m;
        int s = 0;
        int frac = 0;

        if (!take_digits(c, 2, &h) || !take_char(c, ":") || !take_digits(c, 2, &m))
                return false;
        if (take_char(c, ":") && (!take_digits(c, 2, &s) || !take_fraction(c, &frac)))
                return false;
        /* A leap second is the first of the next minute. */
        if (h > 23 || m > 59 || s > 60)
                return false;
        *ms += ((h * 60 + m) * 60 + s) * INT64_C(1000) + frac;
        return true;
}

static bool take_zone(struct cursor *c, int64_t *ms)
{
        int h;
        int m = 0;

        if (c->p == c->end || take_char(c, "Zz"))
                return true;
        bool behind = *c->p == '-';
        if (!take_char(c, "+-") || !take_digits(c, 2, &h))
                return false;
        bool colon = take_char(c, ":");
        if ((colon || c->p < c->end) && !take_digits(c, 2, &m))
                return false;
        if (h > 23 || m > 59)
                return false;
        int64_t off = (h * 60 + m) * INT64_C(60000);
        *ms += behind ? off : -off;
        return true;
}

bool time_parse(const char *p, size_t n, int64_t *ms)
{
        struct cursor c = {p, p + n};
        int64_t t;

        if (!take_date(&c, &t))
                return false;
        if (c.p < c.end) {
                if (!take_char(&c, "Tt ") || !take_clock(&c, &t) || !take_zone(&c, &t))
                        return false;
        }
        if (c.p != c.end)
                return false;
        *ms = t;
        return true;
}

int64_t time_monotonic_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t time_thread_us(void)
{
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t time_monotonic_ms(void)
{
        return time_monotonic_us() / 1000;
}
