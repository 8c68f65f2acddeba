/*
 * grow.h - room for one more element in an array that grows.
 *
 *      struct { struct item *list; size_t count, cap; } all = {0};
 *      ...
 *      if (!grow_room(all.list, all.count, all.cap))
 *              return STENO_ENOMEM;
 *      all.list[all.count++] = item;
 *
 * The array belongs to the caller, who frees it with free(). When memory is out, nothing has
 * changed.
 */
#ifndef BASE_GROW_H
#define BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>

/* `list` is a pointer to elements, `count` how many there are, `cap` a size_t: how many have room.
 */
#define grow_room(list, count, cap) ((count) < (cap) || grow_list(&(list), &(cap), sizeof *(list)))

/* Behind grow_room(): `list` is the address of the pointer. */
bool grow_list(void *list, size_t *cap, size_t size);

#endif
