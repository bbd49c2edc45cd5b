/* Goal: whatever is asked of a ledger, in whatever order, its invariants hold and
 * nothing is lost or done twice, on every engine alike.  Method: each rule by example,
 * a group of them for each part of ledger/ledger.h. */
#include "ledger_fixture.h"

#include <unistd.h>

static const char *part; /* of the name of the files whose tests run */

/* Whether the store of the tests has what the file tests: one file, or many processes. */
static bool applies(const struct test *test)
{
    static const char *const shared_only[] = {"claim_free", "members", "shares"};
    const bool shared = strcmp(fixture_kind->name, "postgres") == 0;
    bool fits = !shared || strcmp(test->file, "sqlite_file") != 0;
    for (size_t i = 0; i < sizeof shared_only / sizeof shared_only[0]; i++)
        fits = fits && (shared || strcmp(test->file, shared_only[i]) != 0);
    return fits && strstr(test->file, part) != NULL;
}

int main(int argc, char **argv)
{
    part = argc > 2 ? argv[2] : "";
    fixture_kind = argc > 1 ? store_kind_find(argv[1]) : NULL;
    if (fixture_kind == NULL) {
        (void)fprintf(stderr, "ledger_test sqlite|simulated|postgres [PART OF A FILE'S NAME]\n");
        return 2;
    }
    if (!store_kind_begin(fixture_kind))
        return 77;
    const int failed = tests_run(applies);
    store_kind_end(fixture_kind);
    return failed;
}
