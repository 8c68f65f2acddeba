/*
 * casefold.h - letters without their case, in every script that has one.
 *
 * Simple folding as Unicode has it: a character becomes one character, so that texts can be
 * compared one by one. Accents stay, and U+00DF is not "ss".
 */
#ifndef BASE_CASEFOLD_H
#define BASE_CASEFOLD_H

#include <stdint.h>

/* Nothing but the letters of ASCII folds to ASCII. */
uint32_t casefold(uint32_t c);

#endif
