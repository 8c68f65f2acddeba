/* The kernel's table of mounts, and which of FUSE's file systems are remote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "base/mount.h"

static const char TABLE[] =
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "31 22 0:26 / /dev/shm rw - tmpfs tmpfs rw\n"
    "36 22 0:5 / /mnt/a\\040-\\040b rw,nosuid shared:9 master:1 - fuse.sshfs me@host:/x rw\n"
    "37 22 0:51 / /mnt/c rw,nosuid - fuse.ntfs-3g /dev/vdb rw\n"
    "a line that is nothing of the kind\n"
    "38 22 0:52 / /mnt/cut rw";

static void the_type_of_a_device_is_found(void **state)
{
        char type[MOUNT_TYPE_MAX + 1] = "";
        (void)state;
        assert_true(mount_type_in(TABLE, strlen(TABLE), makedev(254, 0), type));
        assert_string_equal(type, "ext4");
        assert_true(mount_type_in(TABLE, strlen(TABLE), makedev(0, 5), type));
        assert_string_equal(type, "fuse.sshfs");
        assert_true(mount_type_in(TABLE, strlen(TABLE), makedev(0, 51), type));
        assert_string_equal(type, "fuse.ntfs-3g");
        assert_false(mount_type_in(TABLE, strlen(TABLE), makedev(0, 52), type));
        assert_false(mount_type_in(TABLE, strlen(TABLE), makedev(0, 2), type));
        assert_false(mount_type_in("", 0, makedev(0, 5), type));
        /* However the table is cut, nothing is read after its end. */
        for (size_t n = 0; n < strlen(TABLE); n++)
                mount_type_in(TABLE, n, makedev(0, 52), type);
}

static void the_kernel_knows_its_own(void **state)
{
        char type[MOUNT_TYPE_MAX + 1] = "";
        struct stat st;
        (void)state;
        assert_int_equal(stat("/proc", &st), 0);
        assert_true(mount_type(st.st_dev, type));
        assert_string_equal(type, "proc");
}

static void remote_ones_are_known_by_name(void **state)
{
        static const char *const REMOTE[] = {
            "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.rclone"};
        static const char *const LOCAL[] = {"fuse", "fuseblk", "fuse.ntfs-3g", "fuse.sshfs2",
            "fuse.", "ext4", "virtiofs", "sshfs", ""};
        (void)state;
        for (size_t i = 0; i < sizeof REMOTE / sizeof *REMOTE; i++)
                assert_true(mount_is_remote(REMOTE[i]));
        for (size_t i = 0; i < sizeof LOCAL / sizeof *LOCAL; i++)
                assert_false(mount_is_remote(LOCAL[i]));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_type_of_a_device_is_found),
            cmocka_unit_test(the_kernel_knows_its_own),
            cmocka_unit_test(remote_ones_are_known_by_name),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
