/* Goal: what is put into an archive is there, byte for byte, where and as the
 * documented schema says, whatever was put.  Method: real files in a temporary
 * directory, read back through the archive and through plain SQLite; bytes made
 * from a seed; the corpus of nasty mail where it is found. */
#include "archive_fixture.h"

extern const struct group group_content, group_storing, group_order, group_labels, group_opening,
    group_doubts, group_indexing, group_threads, group_corpus;

static const struct group *const groups[] = {&group_content, &group_storing, &group_order,
                                             &group_labels,  &group_opening, &group_indexing,
                                             &group_threads, &group_corpus,  &group_doubts};

int main(void)
{
    return groups_run(groups, sizeof groups / sizeof groups[0]);
}
