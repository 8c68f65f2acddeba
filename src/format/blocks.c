/* blocks.c - see blocks.h */
#include "format/blocks.h"

#include "format/writing.h"

static bool is_block(const struct json *j, json_ref b)
{
        json_ref type = json_get(j, b, "type");
        if (json_is(j, type, "text"))
                return json_type(j, json_get(j, b, "text")) == JSON_STRING;
        if (!json_is(j, type, "image") && !json_is(j, type, "audio") && !json_is(j, type, "file"))
                return false;
        bool found = false;
        static const char *const keys[] = {"data", "url", "fileId"};
        for (size_t i = 0; i < 3; i++)
                found |= json_type(j, json_get(j, b, keys[i])) == JSON_STRING;
        return found;
}

bool blocks_are(const struct json *j, json_ref v)
{
        if (json_type(j, v) != JSON_ARRAY || !json_count(j, v))
                return false;
        for (json_ref b = json_child(j, v); b != JSON_NONE; b = json_next(j, v, b))
                if (!is_block(j, b))
                        return false;
        return true;
}

void blocks_read(struct reading *r, json_ref b)
{
        enum { TYPE, TEXT, MIME, DATA, URL, FILE_ID, NAME, DETAIL, COUNT };
        static const char *const text_keys[] = {"type", "text", NULL};
        static const char *const keys[] = {
            "type", "", "mimeType", "data", "url", "fileId", "name", "detail", NULL};
        const struct json *j = r->j;
        if (!is_block(j, b)) {
                reading_opaque(r, b);
                return;
        }
        json_ref f[COUNT];
        struct extra *extras = NULL;
        json_ref type = json_get(j, b, "type");
        bool text = json_is(j, type, "text");
        reading_members(r, b, text ? text_keys : keys, f, &extras, false);
        enum part_kind kind = text                        ? PART_TEXT
                              : json_is(j, type, "image") ? PART_IMAGE
                              : json_is(j, type, "audio") ? PART_AUDIO
                                                          : PART_FILE;
        struct part *p = reading_part(r, kind, b);
        p->extras = extras;
        if (text) {
                p->text = reading_string(r, f[TEXT]);
                return;
        }
        struct str *to[] = {&p->media.mime, &p->media.data, &p->media.url, &p->media.file_id,
            &p->media.name, &p->media.detail};
        for (size_t i = MIME; i < COUNT; i++) {
                *to[i - MIME] = reading_string(r, f[i]);
                if (!to[i - MIME]->p)
                        reading_keep(r, &p->extras, keys[i], f[i], false);
        }
}

void blocks_read_output(struct reading *r, struct part *result, json_ref v)
{
        if (v == JSON_NONE)
                return;
        result->output_raw = reading_raw(r, v);
        if (blocks_are(r->j, v)) {
                reading_children(r, result, v, blocks_read);
                return;
        }
        bool text = json_type(r->j, v) == JSON_STRING;
        result->output_kind = text ? OUTPUT_TEXT : OUTPUT_DATA;
        result->output = text ? reading_string(r, v) : reading_raw(r, v);
}

void blocks_write(struct writer *w, const struct message *m, const struct part *p)
{
        if (p->kind == PART_OPAQUE) {
                writing_opaque(w, m, p);
                return;
        }
        jsonw_object(&w->json);
        if (p->kind == PART_TEXT || p->kind == PART_REFUSAL) {
                writing_text(w, "type", "text");
                writing_string(w, "text", p->text);
        } else {
                const struct media *x = &p->media;
                writing_text(w, "type",
                    p->kind == PART_IMAGE   ? "image"
                    : p->kind == PART_AUDIO ? "audio"
                                            : "file");
                writing_string(w, "mimeType", x->mime);
                writing_string(w, "data", x->data);
                writing_string(w, "url", x->url);
                writing_string(w, "fileId", x->file_id);
                writing_string(w, "name", x->name);
                writing_string(w, "detail", x->detail);
        }
        writing_extras(w, m, "content", p->extras, false);
        if (!writing_own(w, m))
                writing_extras(w, m, "content", p->extras, true);
        jsonw_object_end(&w->json);
}

static void write_children(
    struct writer *w, const struct message *m, const char *key, const struct part *p)
{
        jsonw_key(&w->json, key);
        jsonw_array(&w->json);
        for (size_t i = 0; i < p->child_count; i++) {
                const struct part *c = &p->children[i];
                if (c->kind == PART_TEXT || c->kind == PART_IMAGE || c->kind == PART_AUDIO ||
                    c->kind == PART_FILE || c->kind == PART_OPAQUE)
                        blocks_write(w, m, c);
                else
                        writing_lose_part(w, m, c);
        }
        jsonw_array_end(&w->json);
}

void blocks_write_output(
    struct writer *w, const struct message *m, const char *key, const struct part *p)
{
        switch (p->output_kind) {
        case OUTPUT_NONE:
                if (!writing_own(w, m))
                        writing_text(w, key, "");
                break;
        case OUTPUT_TEXT:
                writing_string(w, key, p->output);
                break;
        case OUTPUT_DATA:
                if (!writing_own(w, m) && str_is(p->output, "null"))
                        writing_string(w, key, writing_output(w, m, p));
                else
                        writing_raw(w, key, p->output);
                break;
        case OUTPUT_PARTS:
                write_children(w, m, key, p);
        }
}
