/* Search Console: the data by itself, then the methods through the whole gate. */
#include "console_fixture.h"

int main(void)
{
    return tests_run(NULL);
}
