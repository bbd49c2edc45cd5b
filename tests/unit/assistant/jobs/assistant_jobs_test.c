/* The assistant's jobs against the cloud in a box: each file is a topic. */
#include "support/test.h"

int main(void)
{
    return tests_run(NULL);
}
