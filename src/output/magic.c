/* magic.c - see magic.h */
#include "output/magic.h"

#include <stddef.h>

struct magic {
        size_t at;
        struct str bytes;
        const char *name;
};

static const struct magic table[] = {
    {0, {"\x89PNG\r\n\x1a\n", 8}, "PNG image"},
    {0, {"\xFF\xD8\xFF", 3}, "JPEG image"},
    {0, {"GIF8", 4}, "GIF image"},
    {8, {"WEBP", 4}, "WebP image"},
    {8, {"WAVE", 4}, "WAV audio"},
    {4, {"ftyp", 4}, "MP4 media"},
    {0, {"OggS", 4}, "Ogg media"},
    {0, {"%PDF-", 5}, "PDF document"},
    {0, {"PK\x03\x04", 4}, "ZIP archive"},
    {0, {"\x1F\x8B", 2}, "gzip data"},
    {0, {"\x28\xB5\x2F\xFD", 4}, "Zstandard data"},
    {0,
        {"\xFD"
         "7zXZ",
            5},
        "xz data"},
    {0, {"BZh", 3}, "bzip2 data"},
    {0, {"7z\xBC\xAF", 4}, "7-Zip archive"},
    {257, {"ustar", 5}, "tar archive"},
    {0,
        {"\x7F"
         "ELF",
            4},
        "ELF program"},
    {0, {"\xCF\xFA\xED\xFE", 4}, "Mach-O program"},
    {0, {"\xCA\xFE\xBA\xBE", 4}, "Java class"},
    {0, {"\0asm", 4}, "WebAssembly module"},
    {0, {"MZ", 2}, "Windows program"},
    {0, {"SQLite format 3", 15}, "SQLite database"},
    {0, {"\xFF\xFE\0\0", 4}, "UTF-32 text"},
    {0, {"\xFF\xFE", 2}, "UTF-16 text"},
    {0, {"\xFE\xFF", 2}, "UTF-16 text"},
};

static const struct magic *find(struct str first)
{
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                const struct magic *m = &table[i];
                if (first.n >= m->at + m->bytes.n &&
                    memcmp(first.p + m->at, m->bytes.p, m->bytes.n) == 0)
                        return m;
        }
        return NULL;
}

const char *magic_guess(struct str first)
{
        const struct magic *m = find(first);
        return m ? m->name : NULL;
}
