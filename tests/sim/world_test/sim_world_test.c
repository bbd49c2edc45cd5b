/* The simulated world must keep its own promises before it may judge others. */
#include "sim_world_fixture.h"

int main(void)
{
    return tests_run(NULL);
}
