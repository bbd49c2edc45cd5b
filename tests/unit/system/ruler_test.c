/* ruler_test.c - how complete a stream of time is, in cells (RUL1, RUL2). */
#include "support/test.h"
#include "system/ruler.h"

#include <string.h>

enum { CELL = 1000, END = CELL * TIDE_RULER_CELLS };

static void assert_cells(const struct tide_ruler *ruler, char state, size_t from, size_t to)
{
    for (size_t i = 0; i < TIDE_RULER_CELLS; i++)
        assert_int_equal(ruler->cells[i] == state, i >= from && i < to);
}

TEST(a_span_marks_its_cells_and_no_others)
{
    struct tide_ruler ruler;
    tide_ruler_begin(&ruler, 5 * END, 6 * END);
    assert_int_equal(strlen(ruler.cells), TIDE_RULER_CELLS);
    assert_cells(&ruler, TIDE_RULER_COMPLETE, 0, TIDE_RULER_CELLS);
    tide_ruler_mark(&ruler, 5 * END + 2 * CELL, 5 * END + 4 * CELL, TIDE_RULER_GAP);
    assert_cells(&ruler, TIDE_RULER_GAP, 2, 4);
    tide_ruler_mark(&ruler, 5 * END + 10 * CELL, 5 * END + 10 * CELL, TIDE_RULER_BAD); /* empty */
    assert_cells(&ruler, TIDE_RULER_BAD, 10, 11);
}

TEST(the_worst_of_several_states_is_shown)
{
    struct tide_ruler ruler;
    tide_ruler_begin(&ruler, 0, END);
    tide_ruler_mark(&ruler, 0, END, TIDE_RULER_BEYOND);
    tide_ruler_mark(&ruler, CELL, 2 * CELL, TIDE_RULER_FAILED);
    tide_ruler_mark(&ruler, 0, END, TIDE_RULER_GAP);
    tide_ruler_mark(&ruler, 0, END, TIDE_RULER_COMPLETE);
    assert_cells(&ruler, TIDE_RULER_FAILED, 1, 2);
    assert_int_equal(ruler.cells[0], TIDE_RULER_GAP);
    assert_int_equal(ruler.cells[TIDE_RULER_CELLS - 1], TIDE_RULER_GAP);
}

TEST(what_is_outside_marks_nothing_and_what_reaches_in_is_cut)
{
    struct tide_ruler ruler;
    tide_ruler_begin(&ruler, END, 2 * END);
    tide_ruler_mark(&ruler, 0, END - 1, TIDE_RULER_GAP);
    tide_ruler_mark(&ruler, 3 * END, 4 * END, TIDE_RULER_GAP);
    assert_cells(&ruler, TIDE_RULER_COMPLETE, 0, TIDE_RULER_CELLS);
    tide_ruler_mark(&ruler, 0, UINT64_MAX, TIDE_RULER_GAP);
    assert_cells(&ruler, TIDE_RULER_GAP, 0, TIDE_RULER_CELLS);
}

TEST(without_a_span_of_time_there_is_no_ruler)
{
    struct tide_ruler ruler;
    tide_ruler_begin(&ruler, 7, 7);
    tide_ruler_mark(&ruler, 0, 100, TIDE_RULER_GAP);
    assert_string_equal(ruler.cells, "");
    tide_ruler_begin(&ruler, 8, 7);
    assert_string_equal(ruler.cells, "");
}
