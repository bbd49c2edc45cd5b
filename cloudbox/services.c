#include "cloudbox/services.h"

/* The first one's style answers calls that no service takes. */
const struct box_service *const box_services_all[] = {
    &box_gmail,     &box_mail, &box_pubsub, &box_signin,    &box_console, &box_graph,
    &box_microsoft, &box_chat, &box_batch,  &box_discovery, &box_control, NULL,
};
