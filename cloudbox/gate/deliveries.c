/* deliveries.c - what services send by themselves, one after another.  The place of the service in the
 * cloud's list is in the upper byte of an id. */
#include "cloudbox/gate/inside.h"

enum { PLACE_SHIFT = 56 };

bool box_cloud_next_delivery(box_cloud *cloud, uint64_t now_unix_ms,
                             struct box_delivery *delivery_out)
{
    box_cloud_tell_time(cloud, now_unix_ms);
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (service->delivery_next != NULL &&
            service->delivery_next(cloud, cloud->now_ms, delivery_out)) {
            delivery_out->id |= (uint64_t)i << PLACE_SHIFT;
            return true;
        }
    }
    return false;
}

void box_cloud_delivered(box_cloud *cloud, uint64_t id, int status, tide_text body,
                         uint64_t now_unix_ms)
{
    box_cloud_tell_time(cloud, now_unix_ms);
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        if (i == id >> PLACE_SHIFT && service->delivery_ended != NULL)
            service->delivery_ended(cloud, id & ((UINT64_C(1) << PLACE_SHIFT) - 1), status, body,
                                    cloud->now_ms);
    }
}

uint64_t box_cloud_wake_at_ms(box_cloud *cloud, uint64_t now_unix_ms)
{
    box_cloud_tell_time(cloud, now_unix_ms);
    uint64_t wake_at_ms = UINT64_MAX;
    const struct box_service *service = NULL;
    for (each_service(cloud, i, service)) {
        const uint64_t due_ms =
            service->delivery_wake_at_ms == NULL ? UINT64_MAX : service->delivery_wake_at_ms(cloud);
        if (due_ms < wake_at_ms)
            wake_at_ms = due_ms;
    }
    return box_clock_outside(&cloud->clock, wake_at_ms);
}
