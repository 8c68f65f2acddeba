/* Hashes: known sums, sums that continue, and values that must never change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/seed.h"
#include "base/hash.h"

static uint32_t slow_crc(uint32_t crc, const unsigned char *p, size_t n)
{
        crc = ~crc;
        for (size_t i = 0; i < n; i++) {
                crc ^= p[i];
                for (int k = 0; k < 8; k++)
                        crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
        }
        return ~crc;
}

/* The vectors of RFC 3720, B.4, and the check value of the catalogue of CRCs. */
static void crc32c_gives_the_published_sums(void **state)
{
        (void)state;
        unsigned char data[32];
        uint32_t (*const sums[])(uint32_t, const void *, size_t) = {
            hash_crc32c, hash_crc32c_baseline, hash_crc32c_portable};
        for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
                assert_int_equal(sums[i](0, "123456789", 9), 0xE3069283);
                assert_int_equal(sums[i](0, NULL, 0), 0);
                memset(data, 0, sizeof data);
                assert_int_equal(sums[i](0, data, sizeof data), 0x8A9136AA);
                memset(data, 0xFF, sizeof data);
                assert_int_equal(sums[i](0, data, sizeof data), 0x62A8AB43);
                for (unsigned k = 0; k < 32; k++)
                        data[k] = (unsigned char)k;
                assert_int_equal(sums[i](0, data, sizeof data), 0x46DD794E);
                for (unsigned k = 0; k < 32; k++)
                        data[k] = (unsigned char)(31 - k);
                assert_int_equal(sums[i](0, data, sizeof data), 0x113FDB5C);
        }
}

static void crc32c_of_parts_continues_to_that_of_the_whole(void **state)
{
        (void)state;
        struct seed s = seed_start();
        for (int i = 0; i < seed_rounds(40000); i++) {
                unsigned char data[2000];
                size_t n = seed_below(&s, sizeof data);
                size_t from = seed_below(&s, 9);
                size_t cut = n > from ? from + seed_below(&s, n - from) : n;
                for (size_t k = 0; k < n; k++)
                        data[k] = (unsigned char)seed_next(&s);
                if (from > n)
                        from = cut = n;
                uint32_t want = slow_crc(0, data + from, n - from);
                assert_int_equal(hash_crc32c(0, data + from, n - from), want);
                assert_int_equal(hash_crc32c_baseline(0, data + from, n - from), want);
                assert_int_equal(hash_crc32c_portable(0, data + from, n - from), want);
                uint32_t part = hash_crc32c(0, data + from, cut - from);
                assert_int_equal(hash_crc32c(part, data + cut, n - cut), want);
                assert_int_equal(hash_crc32c_portable(part, data + cut, n - cut), want);
        }
}

/* One byte in front of each place of an eight-byte step reaches every entry of every table. */
static void crc32c_tables_hold_what_they_should(void **state)
{
        (void)state;
        for (unsigned at = 0; at < 8; at++) {
                for (unsigned c = 0; c < 256; c++) {
                        unsigned char data[8] = {0};
                        data[at] = (unsigned char)c;
                        assert_int_equal(hash_crc32c_portable(0, data, 8), slow_crc(0, data, 8));
                }
        }
}

static void crc32c_notices_every_flipped_bit(void **state)
{
        (void)state;
        unsigned char data[100];
        for (unsigned i = 0; i < sizeof data; i++)
                data[i] = (unsigned char)(i * 7);
        uint32_t sum = hash_crc32c(0, data, sizeof data);
        for (unsigned bit = 0; bit < 8 * sizeof data; bit++) {
                data[bit / 8] ^= (unsigned char)(1u << bit % 8);
                assert_int_not_equal(hash_crc32c(0, data, sizeof data), sum);
                data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
}

static void hash_64_is_stable_for_ever(void **state)
{
        (void)state;
        assert_true(hash_64("", 0) == UINT64_C(0xB9034AD37056F5FB));
        assert_true(hash_64("a", 1) == UINT64_C(0x4E7E6B73B43D4B33));
        assert_true(hash_64("msg_0123456789", 14) == UINT64_C(0x429132C2DF641BE9));
        assert_true(hash_64("12345678", 8) == UINT64_C(0x199836835E563232));
        assert_true(hash_64("a\0", 2) != hash_64("a", 1));
        assert_true(hash_64("\0", 1) != hash_64("", 0));
}

static int by_value(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a;
        uint64_t y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

static void hash_64_spreads_similar_ids(void **state)
{
        (void)state;
        enum { N = 200000 };
        static uint64_t seen[N];
        static unsigned buckets[1024];
        for (int i = 0; i < N; i++) {
                char id[32];
                int n = snprintf(id, sizeof id, "msg_%08d", i);
                seen[i] = hash_64(id, (size_t)n);
                buckets[seen[i] & 1023]++;
        }
        for (int i = 0; i < 1024; i++)
                assert_in_range(buckets[i], N / 1024 / 2, N / 1024 * 2);
        qsort(seen, N, sizeof *seen, by_value);
        for (int i = 1; i < N; i++)
                assert_true(seen[i] != seen[i - 1]);
}

static void sha256_gives_the_published_sums(void **state)
{
        (void)state;
        static const char abc[] =
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        char hex[SHA256_HEX];
        assert_int_equal(hash_sha256_hex("", 0, hex), 0);
        assert_string_equal(
            hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_int_equal(hash_sha256_hex("abc", 3, hex), 0);
        assert_string_equal(hex, abc);
        struct sha256 s;
        unsigned char sum[SHA256_SIZE];
        assert_int_equal(hash_sha256_init(&s), 0);
        hash_sha256_update(&s, "a", 1);
        hash_sha256_update(&s, NULL, 0);
        hash_sha256_update(&s, "bc", 2);
        hash_sha256_finish(&s, sum);
        hash_hex(sum, sizeof sum, hex);
        assert_string_equal(hex, abc);
        hash_sha256_release(&s);
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(crc32c_gives_the_published_sums),
            cmocka_unit_test(crc32c_of_parts_continues_to_that_of_the_whole),
            cmocka_unit_test(crc32c_tables_hold_what_they_should),
            cmocka_unit_test(crc32c_notices_every_flipped_bit),
            cmocka_unit_test(hash_64_is_stable_for_ever),
            cmocka_unit_test(hash_64_spreads_similar_ids),
            cmocka_unit_test(sha256_gives_the_published_sums),
        };
        return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
