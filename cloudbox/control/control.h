/* control.h - the control page: /_cloud/... */
#ifndef BOX_CONTROL_H
#define BOX_CONTROL_H

#include "cloudbox/gate/service.h"

extern const struct box_service box_control;

#endif
