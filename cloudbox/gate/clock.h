/* clock.h - the cloud's own time: the caller's clock, moved and sped up.
 *
 * So that a month of expiries or an hour of quota passes in seconds.  It ends with the
 * year 9999 and stands still then, so that no sum of times overflows. */
#ifndef BOX_CLOCK_H
#define BOX_CLOCK_H

#include <stdint.h>

#define BOX_CLOCK_MS_MAX UINT64_C(253402300799999)

struct box_clock {
    uint64_t outside_ms;     /* the caller's clock when it was last set */
    uint64_t inside_ms;      /* the cloud's at that moment */
    uint32_t speed_permille; /* 1000: as fast as the caller's; 0: it stands still */
    uint64_t latest_ms;      /* BCLD4 */
};

void box_clock_init(struct box_clock *clock, uint64_t inside_ms, uint64_t outside_ms);
uint64_t box_clock_at(struct box_clock *clock, uint64_t outside_ms);
/* Only forward. */
void box_clock_set(struct box_clock *clock, uint64_t inside_ms, uint64_t outside_ms);
void box_clock_speed(struct box_clock *clock, uint32_t speed_permille, uint64_t outside_ms);
/* The caller's time at which the cloud's will be `inside_ms`. */
uint64_t box_clock_outside(const struct box_clock *clock, uint64_t inside_ms);

#endif
