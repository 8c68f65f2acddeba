/* sdkparts.c - see sdkparts.h */
#include "format/sdkparts.h"

void sdkparts_keep_type(struct reading *r, struct extra **extras, json_ref type)
{
        reading_keep(r, extras, "type", type, true);
        for (struct extra *x = *extras; x; x = x->next)
                x->idle = x->idle || (x->inner && str_is(x->key, "\"type\""));
}

struct str sdkparts_type(const struct writer *w, const struct message *m, const struct part *p)
{
        const struct extra *x = writing_own(w, m) ? p->extras : NULL;
        while (x && !(x->inner && str_is(x->key, "\"type\"")))
                x = x->next;
        return x ? x->value : (struct str){0};
}

enum part_kind sdkparts_kind(struct str mime)
{
        return str_starts(mime, "image/")   ? PART_IMAGE
               : str_starts(mime, "audio/") ? PART_AUDIO
                                            : PART_FILE;
}

struct str sdkparts_mime(const struct part *p)
{
        return p->media.mime.p         ? p->media.mime
               : p->kind == PART_IMAGE ? STR("image/png")
                                       : STR("application/octet-stream");
}

static void write_file(struct writer *w, const struct message *m, const struct part *p,
    const struct sdkparts_writer *how)
{
        jsonw_object(&w->json);
        how->file(w, m, p);
        writing_extras(w, m, "content", p->extras, false);
        jsonw_object_end(&w->json);
        if (p->media.detail.p && !writing_own(w, m))
                writing_lose(w, m, "detail", "the format has no place for it");
}

static void write_text(struct writer *w, const struct message *m, const struct part *p)
{
        jsonw_object(&w->json);
        writing_text(w, "type", p->kind == PART_THINKING ? "reasoning" : "text");
        writing_string(w, "text", p->text.p ? p->text : STR(""));
        writing_extras(w, m, "content", p->extras, false);
        jsonw_object_end(&w->json);
        if (p->kind == PART_REFUSAL)
                writing_lose(w, m, "refusal", "written as text");
        if (p->signature.p && !writing_own(w, m))
                writing_lose(w, m, "signature", "the format has no place for it");
}

void sdkparts_write(struct writer *w, const struct message *m, const struct part *p,
    const struct sdkparts_writer *how)
{
        switch (p->kind) {
        case PART_CALL:
                how->call(w, m, p);
                break;
        case PART_RESULT:
                how->result(w, m, p);
                break;
        case PART_IMAGE:
        case PART_AUDIO:
        case PART_FILE:
                write_file(w, m, p, how);
                break;
        case PART_OPAQUE:
                writing_opaque(w, m, p);
                break;
        case PART_REDACTED:
                writing_lose_part(w, m, p);
                break;
        default:
                write_text(w, m, p);
        }
}
