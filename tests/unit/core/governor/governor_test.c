/* Goal: the quota is never crossed and nearly all of it is used, whatever dies.
 * Method: examples of each rule, random operations with the invariants checked
 * after each, and whole hours under a referee on its own clock (referee.h). */
#include "governor_fixture.h"

int main(void)
{
    return tests_run(NULL);
}
