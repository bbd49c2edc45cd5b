#include "../probe.h"

int probe_absent(void)
{
    return 1;
}
