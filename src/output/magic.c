/* magic.c - see magic.h */
#include "output/magic.h"

#include <stddef.h>

struct magic {
        size_t at;
        struct str bytes;
        const char *name;
        const char *mime;
};

static const struct magic table[] = {
    {0, {"\x89PNG\r\n\x1a\n", 8}, "PNG image", "image/png"},
    {0, {"\xFF\xD8\xFF", 3}, "JPEG image", "image/jpeg"},
    {0, {"GIF8", 4}, "GIF image", "image/gif"},
    {8, {"WEBP", 4}, "WebP image", "image/webp"},
    {8, {"WAVE", 4}, "WAV audio", "audio/wav"},
    {4, {"ftyp", 4}, "MP4 media", "video/mp4"},
    {0, {"OggS", 4}, "Ogg media", "application/ogg"},
    {0, {"%PDF-", 5}, "PDF document", "application/pdf"},
    {0, {"PK\x03\x04", 4}, "ZIP archive", "application/zip"},
    {0, {"\x1F\x8B", 2}, "gzip data", "application/gzip"},
    {0, {"\x28\xB5\x2F\xFD", 4}, "Zstandard data", "application/zstd"},
    {0,
        {"\xFD"
         "7zXZ",
            5},
        "xz data", "application/x-xz"},
    {0, {"BZh", 3}, "bzip2 data", "application/x-bzip2"},
    {0, {"7z\xBC\xAF", 4}, "7-Zip archive", "application/x-7z-compressed"},
    {257, {"ustar", 5}, "tar archive", "application/x-tar"},
    {0,
        {"\x7F"
         "ELF",
            4},
        "ELF program", "application/x-elf"},
    {0, {"\xCF\xFA\xED\xFE", 4}, "Mach-O program", "application/x-mach-binary"},
    {0, {"\xCA\xFE\xBA\xBE", 4}, "Java class", "application/java-vm"},
    {0, {"\0asm", 4}, "WebAssembly module", "application/wasm"},
    {0, {"MZ", 2}, "Windows program", "application/vnd.microsoft.portable-executable"},
    {0, {"SQLite format 3", 15}, "SQLite database", "application/vnd.sqlite3"},
    {0, {"\xFF\xFE\0\0", 4}, "UTF-32 text", "text/plain; charset=utf-32"},
    {0, {"\xFF\xFE", 2}, "UTF-16 text", "text/plain; charset=utf-16"},
    {0, {"\xFE\xFF", 2}, "UTF-16 text", "text/plain; charset=utf-16"},
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

const char *magic_mime(struct str first)
{
        const struct magic *m = find(first);
        return m ? m->mime : "application/octet-stream";
}
