/* The real world's network against a server that behaves as told. */
#include "net_fixture.h"

int main(void)
{
    /* A proxy of the machine has no business between a test and its server. */
    (void)setenv("no_proxy", "*", 1);
    return tests_run(NULL);
}
