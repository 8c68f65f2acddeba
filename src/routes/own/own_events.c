/*
 * own_events.c - the default projection: every event that is for readers, with its number as the
 * id, so that a reader can come back with Last-Event-ID.
 */
#include "routes/own/own_events.h"

#include "model/event.h"

static bool put_event(void *state, const struct projected *e, struct buf *out)
{
        (void)state;
        if (!event_is_shown(e->type))
                return true;
        buf_printf(out, "id: %s-%llu\nevent: %s\ndata: {\"seq\":%llu", e->run,
            (unsigned long long)e->seq, e->type, (unsigned long long)e->seq);
        if (e->n > 2 && e->data[0] == '{') {
                buf_putc(out, ',');
                buf_put(out, e->data + 1, e->n - 1);
        } else {
                buf_putc(out, '}');
        }
        buf_puts(out, "\n\n");
        return true;
}

const struct projection own_events_projection = {.name = "", .event = put_event};
