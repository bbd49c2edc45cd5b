/* The executors of a drive's actions, with a real folder and the cloud in a box.
 *
 * Goal: an action has its effect or none, never on something else than was planned, and what was
 * transferred is not transferred again.  Method: each test is a plan, a trouble at one point of it,
 * and a look at both sides afterwards; the network, the other user and the disk make the trouble. */
#include "support/test.h"

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return tests_run(NULL);
}
