/* services.h - all services of the cloud, and what a program needs to set one up.  A
 * program passes the list to box_cloud_new(); a test may pass only what it needs. */
#ifndef BOX_SERVICES_H
#define BOX_SERVICES_H

#include "cloudbox/chat/chat.h"
#include "cloudbox/console/console.h"
#include "cloudbox/control/control.h"
#include "cloudbox/gate/cloud.h"
#include "cloudbox/gmail/gmail.h"
#include "cloudbox/google/batch.h"
#include "cloudbox/google/discovery.h"
#include "cloudbox/graph/graph.h"
#include "cloudbox/mailbox/mail.h"
#include "cloudbox/push/push.h"
#include "cloudbox/signin/auth.h"
#include "cloudbox/signin/microsoft.h"

extern const struct box_service *const box_services_all[]; /* NULL-terminated */

#endif
