/*
 * patience.h - how long a test waits for what must come, and how long it takes for "never".
 *
 * No test depends on how fast the machine is. What must happen has happened within PATIENCE_MS on
 * any machine; what must not be waited for takes FOREVER_MS, so that somebody who waits for it all
 * the same is noticed.
 */
#ifndef TESTS_SUPPORT_PATIENCE_H
#define TESTS_SUPPORT_PATIENCE_H

#define PATIENCE_MS 300000
#define FOREVER_MS (2 * PATIENCE_MS)
#define FOREVER_S "600" /* the same for sleep(1) */

#endif
