/* discovery.h - the APIs describe themselves: /discovery/v1/apis. */
#ifndef BOX_DISCOVERY_H
#define BOX_DISCOVERY_H

#include "cloudbox/gate/service.h"

extern const struct box_service box_discovery;

#endif
