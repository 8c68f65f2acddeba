/*
 * fit_media.c - images, sounds and files (fit_work.h): each is written in a form that the provider
 * accepts, or replaced by a note if there is none.
 */
#include "format/fit_work.h"

#include <stdio.h>
#include <string.h>

#include "format/rules.h"
#include "format/writing.h"
#include "model/token.h"

static const char REFUSED[] = "the provider does not accept it, so a note replaces it";

static bool is_media(const struct part *p)
{
        return p->kind == PART_IMAGE || p->kind == PART_AUDIO || p->kind == PART_FILE;
}

static const char *guess_type(struct str url)
{
        static const char *const ends[][2] = {{".png", "image/png"}, {".jpg", "image/jpeg"},
            {".jpeg", "image/jpeg"}, {".gif", "image/gif"}, {".webp", "image/webp"},
            {".pdf", "application/pdf"}, {".txt", "text/plain"}, {".mp4", "video/mp4"},
            {".mp3", "audio/mp3"}, {".wav", "audio/wav"}};
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
                size_t n = strlen(ends[i][0]);
                if (url.n > n && memcmp(url.p + url.n - n, ends[i][0], n) == 0)
                        return ends[i][1];
        }
        return NULL;
}

/* Corrects common mistakes: base64 in place of an address, other names of types. */
static void correct(struct fit *f, struct part *p)
{
        struct media *x = &p->media;
        if (x->url.p && !x->data.p) {
                struct str url = token_decode(x->url, f->arena, NULL);
                const char *type = rules_image_type(url);
                if (type && rules_is_base64(url)) {
                        x->data = url;
                        x->mime = str_of(type);
                        x->url = (struct str){0};
                }
        }
        if (x->data.p && str_starts(x->data, "data:")) {
                struct str url = x->data;
                x->data = (struct str){0};
                const char *at = memmem(url.p, url.n, ";base64,", 8);
                if (at) {
                        x->mime = str_span(url.p + 5, (size_t)(at - url.p) - 5);
                        x->data = str_span(at + 8, (size_t)(url.p + url.n - at) - 8);
                }
        }
        if (x->data.p && memchr(x->data.p, '\\', x->data.n))
                x->data = token_decode(x->data, f->arena, NULL); /* base64 may have "\/" */
        if (str_is(x->mime, "image/jpg"))
                x->mime = STR("image/jpeg");
        /* Assign only a type that differs: is_same() compares pointers. */
        const char *real = x->data.p && p->kind == PART_IMAGE ? rules_image_type(x->data) : NULL;
        if (real && !str_is(x->mime, real))
                x->mime = str_of(real);
        if (!x->data.p && !x->mime.p && f->w->format == &format_gemini && x->url.p) {
                const char *type = guess_type(x->url);
                x->mime = type                    ? str_of(type)
                          : p->kind == PART_IMAGE ? STR("image/jpeg")
                                                  : STR("application/pdf");
        }
}

static const char *const *types_of(const struct fit *f, const struct part *p)
{
        return p->kind == PART_IMAGE   ? f->rules->images
               : p->kind == PART_AUDIO ? f->rules->sounds
                                       : f->rules->files;
}

static bool is_stored_file(const struct fit *f, struct str url)
{
        return f->w->format == &format_gemini && str_starts(url, "gs://") && url.n > 5 &&
               url.p[5] != '/';
}

static bool takes_address(const struct fit *f, const struct part *p)
{
        const struct format *to = f->w->format;
        return p->kind == PART_IMAGE || to != &format_openai;
}

static bool is_taken(struct fit *f, const struct part *p)
{
        const struct media *x = &p->media;
        struct str mime = x->mime.p ? token_decode(x->mime, f->arena, NULL) : STR("");
        bool gemini = f->w->format == &format_gemini;
        if (p->kind == PART_AUDIO &&
            (f->w->format == &format_anthropic || f->w->format == &format_responses))
                return false;
        if (x->data.p) {
                if (p->kind == PART_IMAGE && !x->mime.p)
                        return rules_image_type(x->data) != NULL;
                return mime.n && rules_is_media(types_of(f, p), mime) && rules_is_base64(x->data);
        }
        if (x->url.p) {
                struct str url = token_decode(x->url, f->arena, NULL);
                bool https = f->rules->https_only || gemini;
                if (gemini && !rules_is_media(types_of(f, p), mime))
                        return false;
                return is_stored_file(f, url) ||
                       (takes_address(f, p) && rules_is_address(url, https));
        }
        return x->file_id.n && !gemini &&
               !(f->w->format == &format_openai && p->kind == PART_IMAGE);
}

static struct part note_for(struct fit *f, const struct part *p)
{
        char text[200];
        const char *what = p->kind == PART_IMAGE   ? "An image"
                           : p->kind == PART_AUDIO ? "A sound"
                                                   : "A file";
        struct str mime = p->media.mime.p ? token_decode(p->media.mime, f->arena, NULL) : STR("");
        int n = snprintf(text, sizeof text,
            "[%s%s%.*s is not shown here: the provider does not take it.]", what,
            mime.n ? " of type " : "", (int)(mime.n > 60 ? 60 : mime.n), mime.n ? mime.p : "");
        return (struct part){.kind = PART_TEXT,
            .text = token_make(str_span(text, (size_t)n), f->arena),
            .seq = p->seq};
}

static bool is_same(const struct media *a, const struct media *b)
{
        return a->url.p == b->url.p && a->data.p == b->data.p && a->mime.p == b->mime.p;
}

/* Returns the extras without `detail` and `filename`, which are extras only if they are no strings
 * (null). */
static struct extra *sift(struct fit *f, const struct part *p)
{
        for (const struct extra *x = p->extras; x; x = x->next) {
                if (!str_is(x->key, "\"detail\"") && !str_is(x->key, "\"filename\""))
                        continue;
                struct part rest = *p;
                rest.extras = fit_without(f, p->extras, x);
                return sift(f, &rest);
        }
        return p->extras;
}

/* Fits one image, sound or file. Returns true if it changed. */
static bool fit_medium(struct fit *f, const struct message *m, struct part *p)
{
        struct media before = p->media;
        correct(f, p);
        bool named = f->w->format == &format_openai || f->w->format == &format_responses;
        if (named && p->kind == PART_FILE && p->media.data.p && !p->media.name.n)
                p->media.name = STR("file");
        if (p->media.detail.p && !p->media.detail.n)
                p->media.detail = (struct str){0};
        struct extra *extras = p->extras;
        if (named && m->origin == f->w->format)
                p->extras = sift(f, p);
        if (is_taken(f, p)) {
                bool same = is_same(&before, &p->media) && before.name.p == p->media.name.p &&
                            before.detail.p == p->media.detail.p && p->extras == extras;
                if (!same)
                        p->raw = (struct str){0};
                return !same;
        }
        static const char *const names[] = {
            [PART_IMAGE] = "image", [PART_AUDIO] = "audio", [PART_FILE] = "file"};
        writing_lose(f->w, m, names[p->kind], REFUSED);
        writing_lose_extras(f->w, m, names[p->kind], p->extras);
        *p = note_for(f, p);
        return true;
}

static int fit_list(
    struct fit *f, const struct message *m, struct part **list, size_t count, bool *changed)
{
        struct part *copy = NULL;
        for (size_t i = 0; i < count; i++) {
                if (!is_media(&(*list)[i]))
                        continue;
                struct part p = (*list)[i];
                if (!fit_medium(f, m, &p))
                        continue;
                if (!copy) {
                        copy = arena_alloc(f->arena, count * sizeof *copy);
                        if (!copy)
                                return STENO_ENOMEM;
                        memcpy(copy, *list, count * sizeof *copy);
                }
                copy[i] = p;
                *changed = true;
        }
        if (copy)
                *list = copy;
        return 0;
}

int fit_media(struct fit *f, struct message *m, bool *touched)
{
        for (size_t i = 0; i < m->count; i++) {
                if (!is_media(&m->parts[i]) && !m->parts[i].child_count)
                        continue;
                struct part p = m->parts[i];
                bool changed = false;
                if (is_media(&p))
                        changed = fit_medium(f, m, &p);
                else if (p.kind == PART_RESULT &&
                         fit_list(f, m, &p.children, p.child_count, &changed))
                        return STENO_ENOMEM;
                if (!changed)
                        continue;
                if (!fit_own_parts(f, m, touched))
                        return STENO_ENOMEM;
                if (p.kind == PART_RESULT)
                        p.raw = (struct str){0};
                p.peer = m->parts[i].peer; /* the peer may have moved with the others */
                m->parts[i] = p;
        }
        return 0;
}
