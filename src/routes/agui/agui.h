/*
 * agui.h - AG-UI, the protocol between agents and user interfaces.
 */
#ifndef ROUTES_AGUI_AGUI_H
#define ROUTES_AGUI_AGUI_H

#include "http/projection.h"

/* ?format=agui */
extern const struct projection agui_projection;

#endif
