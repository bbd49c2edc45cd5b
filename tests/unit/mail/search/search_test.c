/* Goal: a search finds what matching every stored message would find (SRC1), in
 * order, and pages join without gap or repetition (SRC2).  Method: an archive is
 * filled through its own interface with messages made from a seed, over several
 * years and parts; random queries are written from random trees, and the same
 * trees are matched naively against the texts from which the messages were
 * made. */
#include "search_fixture.h"

int main(void)
{
    return tests_run(NULL);
}
