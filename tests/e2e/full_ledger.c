/* Makes a ledger with every kind of row, for the test of copies: full_ledger PATH JOBS. */
#include "support/full_ledger.h"

int main(int argc, char **argv)
{
    tide_world *world = NULL;
    uint64_t jobs = 0;
    if (argc != 3 || !tide_text_to_u64(tide_text_of(argv[2]), &jobs)) {
        (void)fprintf(stderr, "usage: full_ledger PATH JOBS\n");
        return 2;
    }
    FULL_MUST(tide_world_real_new(tide_mem_heap(), &world, &full_err));
    full_ledger_make(world, argv[1], (size_t)jobs);
    tide_world_real_free(world);
    return 0;
}
