/* The reader's jobs against the cloud in a box: each file is a topic.  PROGRAM [PATTERN OF NAMES]. */
#include "support/test.h"

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return tests_run(NULL);
}
