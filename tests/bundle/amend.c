/* amend.c - a helper of seal.test: deletes a message, as the server's routes do.
 *
 *   amend STORE CONVERSATION MESSAGE_ID
 */
#include <stdio.h>

#include "steno.h"

int main(int argc, char **argv)
{
        struct steno_store *store;
        struct steno_conv *conv;
        struct steno_error err = {0};
        if (argc != 4)
                return 2;
        int rc = steno_open(argv[1], NULL, &store, &err);
        if (rc == 0) {
                rc = steno_conv_open(store, NULL, argv[2], &conv, &err);
                if (rc == 0) {
                        rc = steno_amend(conv, "delete", argv[3], NULL, 0, NULL, NULL, &err);
                        steno_conv_close(conv);
                }
                steno_close(store);
        }
        if (rc)
                fprintf(stderr, "amend: %s\n", err.msg);
        return rc ? 1 : 0;
}
