/* services.h - all the services of the cloud.  A program passes the list to
 * box_cloud_new(); a test may pass only what it needs. */
#ifndef BOX_SERVICES_H
#define BOX_SERVICES_H

#include "cloudbox/gate/service.h"

extern const struct box_service *const box_services_all[]; /* NULL-terminated */

#endif
