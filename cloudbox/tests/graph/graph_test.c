/* Microsoft Graph's drives, through the whole gate. */
#include "graph_fixture.h"

int main(void)
{
    return tests_run(NULL);
}
