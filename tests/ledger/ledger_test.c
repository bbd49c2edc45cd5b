/* Goal: whatever is asked of a ledger, in whatever order, its invariants hold and
 * nothing is lost or done twice, on every engine alike.  Method: each rule by example,
 * a group of them for each part of ledger/ledger.h. */
#include "ledger_fixture.h"

#include <unistd.h>

extern const struct group group_names, group_enqueue, group_dedupe, group_dependencies,
    group_claiming, group_claim_free, group_finishing, group_reclaiming, group_commands,
    group_cycles, group_records, group_reading, group_purge, group_transactions, group_members,
    group_shares, group_batches, group_doctor, group_sqlite_file;

static const struct group *const groups[] = {
    &group_names,      &group_enqueue,    &group_dedupe,   &group_dependencies, &group_claiming,
    &group_finishing,  &group_reclaiming, &group_commands, &group_cycles,       &group_records,
    &group_reading,    &group_purge,      &group_batches,  &group_doctor,       &group_transactions,
    &group_claim_free, &group_members,    &group_shares,   &group_sqlite_file,
};

/* Whether the store of the tests has what the group tests: one file, or many processes. */
static bool group_applies(const struct group *group)
{
    bool shared = strcmp(fixture_kind->name, "postgres") == 0;
    if (group == &group_claim_free || group == &group_members || group == &group_shares)
        return shared;
    return group != &group_sqlite_file || !shared;
}

/* cmocka's own macro wants the array itself. */
static int group_run(const struct group *group)
{
    char what[100];
    (void)snprintf(what, sizeof what, "%s (%s)", group->what, fixture_kind->name);
    return _cmocka_run_group_tests(what, group->tests, group->count, NULL, NULL);
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 2 ? argv[2] : "";
    fixture_kind = argc > 1 ? store_kind_find(argv[1]) : NULL;
    if (fixture_kind == NULL) {
        (void)fprintf(stderr, "ledger_test sqlite|simulated|postgres [PART OF A GROUP'S NAME]\n");
        return 2;
    }
    if (!store_kind_begin(fixture_kind))
        return 77;
    int failed = 0;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (strstr(groups[i]->what, wanted) != NULL && group_applies(groups[i]))
            failed += group_run(groups[i]);
    }
    store_kind_end(fixture_kind);
    return failed > 0;
}
