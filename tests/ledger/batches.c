/* batches.c - an enqueue that is asked twice, because its answer was lost, happens once. */
#include "ledger_fixture.h"

CASE(a_batch_is_put_once_and_found_again)
{
    const tide_text name = TIDE_TEXT("import 2026-03");
    uint64_t ids[3] = {add_plain(f), add_plain(f), add_plain(f)};
    uint64_t seen[4] = {0};
    size_t count = 77;
    assert_int_equal(tide_ledger_batch_get(f->ledger, name, seen, 4, &count, &f->err),
                     TIDE_NOT_FOUND);
    assert_int_equal(count, 77);
    begin(f);
    OK(tide_ledger_batch_put(f->tx, name, ids, 3, NOW, &f->err));
    undo(f);
    assert_int_equal(tide_ledger_batch_get(f->ledger, name, seen, 4, &count, &f->err),
                     TIDE_NOT_FOUND);
    begin(f);
    OK(tide_ledger_batch_put(f->tx, name, ids, 3, NOW, &f->err));
    OK(tide_ledger_batch_get(f->ledger, name, seen, 4, &count, &f->err)); /* in the same one */
    assert_int_equal(count, 3);
    commit(f);
    reopen(f, false);
    memset(seen, 0, sizeof seen);
    OK(tide_ledger_batch_get(f->ledger, name, seen, 4, &count, &f->err));
    assert_int_equal(count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(seen[i], ids[i]);

    /* The second is refused, and its transaction can continue. */
    begin(f);
    assert_int_equal(tide_ledger_batch_put(f->tx, name, ids, 1, NOW, &f->err), TIDE_EXISTS);
    OK(tide_ledger_note(f->tx, "went", TIDE_TEXT("on"), &f->err));
    commit(f);
    assert_true(note_is(f, "went", "on"));
    OK(tide_ledger_batch_get(f->ledger, name, seen, 4, &count, &f->err));
    assert_int_equal(count, 3);
}

CASE(a_batch_has_a_name_and_any_number_of_ids)
{
    enum { MANY = 5000 };
    static uint64_t ids[MANY];
    static uint64_t seen[MANY];
    char long_name[TIDE_DEDUPE_BYTES_MAX + 1];
    memset(long_name, 'n', sizeof long_name);
    for (size_t i = 0; i < MANY; i++)
        ids[i] = MANY - i;
    size_t count = 0;
    begin(f);
    OK(tide_ledger_batch_put(f->tx, TIDE_TEXT("many"), ids, MANY, NOW, &f->err));
    OK(tide_ledger_batch_put(f->tx, TIDE_TEXT("none"), NULL, 0, NOW, &f->err));
    OK(tide_ledger_batch_put(f->tx, TIDE_TEXT("quote ' \" {,}"), ids, 1, NOW, &f->err));
    assert_int_equal(tide_ledger_batch_put(f->tx, TIDE_TEXT_NONE, ids, 1, NOW, &f->err),
                     TIDE_INVALID);
    assert_int_equal(tide_ledger_batch_put(f->tx, (tide_text){long_name, sizeof long_name}, ids, 1,
                                           NOW, &f->err),
                     TIDE_INVALID);
    commit(f);
    OK(tide_ledger_batch_get(f->ledger, TIDE_TEXT("many"), seen, MANY, &count, &f->err));
    assert_int_equal(count, MANY);
    assert_memory_equal(seen, ids, sizeof seen); /* in the order they were put */
    OK(tide_ledger_batch_get(f->ledger, TIDE_TEXT("none"), seen, MANY, &count, &f->err));
    assert_int_equal(count, 0);
    OK(tide_ledger_batch_get(f->ledger, TIDE_TEXT("quote ' \" {,}"), seen, MANY, &count, &f->err));
    assert_int_equal(count, 1);
    /* Half an answer is none. */
    assert_int_equal(tide_ledger_batch_get(f->ledger, TIDE_TEXT("many"), seen, 10, &count, &f->err),
                     TIDE_FULL);
}

CASE(a_batch_is_forgotten_with_jobs_as_old)
{
    uint64_t id = add_plain(f);
    uint64_t seen[1];
    size_t count = 0;
    begin(f);
    OK(tide_ledger_batch_put(f->tx, TIDE_TEXT("old"), &id, 1, NOW, &f->err));
    OK(tide_ledger_batch_put(f->tx, TIDE_TEXT("young"), &id, 1, NOW + 1000, &f->err));
    commit(f);
    begin(f);
    OK(tide_ledger_purge(f->tx, NOW + 1000, 100, &count, &f->err));
    commit(f);
    assert_int_equal(tide_ledger_batch_get(f->ledger, TIDE_TEXT("old"), seen, 1, &count, &f->err),
                     TIDE_NOT_FOUND);
    OK(tide_ledger_batch_get(f->ledger, TIDE_TEXT("young"), seen, 1, &count, &f->err));
}
