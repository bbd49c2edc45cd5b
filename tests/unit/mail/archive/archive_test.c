/* Goal: what is put into an archive is there, byte for byte, where and as the
 * documented schema says, whatever was put.  Method: real files in a temporary
 * directory, read back through the archive and through plain SQLite; bytes made
 * from a seed; the corpus of nasty mail where it is found. */
#include "archive_fixture.h"

int main(void)
{
    return tests_run(NULL);
}
