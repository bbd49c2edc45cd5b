#include "cloudbox/services.h"

const struct box_service *const box_services_all[] = {
    &box_gmail, &box_signin, &box_console, &box_chat, &box_discovery, &box_control, NULL,
};
