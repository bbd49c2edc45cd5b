/* lanes_fixture.h - what the tests of the lanes share (E3): short names for jobs and questions. */
#ifndef TIDE_TESTS_LANES_FIXTURE_H
#define TIDE_TESTS_LANES_FIXTURE_H

#include "core/lanes.h"
#include "support/ok.h"
#include "support/test.h"

#define I TIDE_LANE_INTERACTIVE
#define B TIDE_LANE_BULK

tide_lanes *lanes_of(uint32_t workers, uint32_t interactive, uint32_t bulk);

struct tide_brief job(uint64_t id, int lane, uint32_t account, uint8_t priority);
void want(tide_lanes *lanes, struct tide_brief brief);
void hold(tide_lanes *lanes, struct tide_brief brief);
/* What comes next, 0: nothing. */
uint64_t claim(tide_lanes *lanes);
uint64_t start(tide_lanes *lanes);
uint64_t preempt(tide_lanes *lanes);

#define CASE(name, ...) TEST_OF(name, tide_lanes *lanes, lanes_of(__VA_ARGS__), tide_lanes_free)

#endif
