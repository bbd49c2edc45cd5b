/* The words of records, and which status may follow which: the whole matrix (AST1 to AST5). */
#include "assistant/words/status.h"
#include "support/test.h"

#define P TIDE_ASSISTANT_PENDING
#define D TIDE_ASSISTANT_DRAFTED
#define R TIDE_ASSISTANT_REWORK_REQUESTED
#define S TIDE_ASSISTANT_SENT
#define K TIDE_ASSISTANT_SKIPPED
#define A TIDE_ASSISTANT_ARCHIVED

TEST(the_whole_matrix_of_statuses)
{
    static const char *const matrix[TIDE_ASSISTANT_STATUSES] = {
        /*        none P D R S K A: may follow */
        [TIDE_ASSISTANT_NO_STATUS] = ".P...K.",
        [P] = ".PD.SKA",
        [D] = ".PDRSKA",
        [R] = ".PDRSKA",
        [S] = ".P..SKA",
        [K] = ".P...KA",
        [A] = ".P...KA",
    };
    for (unsigned from = 0; from < TIDE_ASSISTANT_STATUSES; from++)
        for (unsigned to = 0; to < TIDE_ASSISTANT_STATUSES; to++) {
            const bool may =
                tide_assistant_may_follow((tide_assistant_status)from, (tide_assistant_status)to);
            if (may != (matrix[from][to] != '.'))
                fail_msg("%s to %s: %d", tide_assistant_status_name((tide_assistant_status)from),
                         tide_assistant_status_name((tide_assistant_status)to), may);
        }
}

TEST(words_come_back)
{
    for (unsigned i = 1; i < TIDE_ASSISTANT_STATUSES; i++) {
        const char *name = tide_assistant_status_name((tide_assistant_status)i);
        assert_int_equal(tide_assistant_status_of(tide_text_of(name)), i);
    }
    for (unsigned i = 1; i < TIDE_ASSISTANT_CATEGORIES; i++) {
        const char *name = tide_assistant_category_name((tide_assistant_category)i);
        assert_int_equal(tide_assistant_category_of(tide_text_of(name)), i);
    }
    assert_int_equal(tide_assistant_status_of(TIDE_TEXT("")), TIDE_ASSISTANT_NO_STATUS);
    assert_int_equal(tide_assistant_status_of(TIDE_TEXT("Pending")), TIDE_ASSISTANT_NO_STATUS);
    assert_int_equal(tide_assistant_category_of(TIDE_TEXT("spam")), TIDE_ASSISTANT_NO_CATEGORY);
}

/* J9: nine labels; each category has its own, and none has two. */
TEST(each_category_has_a_label)
{
    static const struct {
        tide_assistant_category category;
        const char *name;
    } wanted[] = {
        {TIDE_ASSISTANT_NEEDS_RESPONSE, "\xf0\x9f\xa4\x96 AI/Needs Response"},
        {TIDE_ASSISTANT_ACTION_REQUIRED, "\xf0\x9f\xa4\x96 AI/Action Required"},
        {TIDE_ASSISTANT_PAYMENT_REQUEST, "\xf0\x9f\xa4\x96 AI/Payment Requests"},
        {TIDE_ASSISTANT_FYI, "\xf0\x9f\xa4\x96 AI/FYI"},
        {TIDE_ASSISTANT_WAITING, "\xf0\x9f\xa4\x96 AI/Waiting"},
    };
    assert_int_equal(TIDE_ASSISTANT_LABELS, 9);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        assert_string_equal(tide_assistant_label_name(tide_assistant_label_of(wanted[i].category)),
                            wanted[i].name);
    assert_string_equal(tide_assistant_label_name(TIDE_ASSISTANT_LABEL_DONE),
                        "\xf0\x9f\xa4\x96 AI/Done");
    assert_string_equal(tide_assistant_label_name(TIDE_ASSISTANT_LABEL_OUTBOX),
                        "\xf0\x9f\xa4\x96 AI/Outbox");
    assert_string_equal(tide_assistant_label_name(TIDE_ASSISTANT_LABEL_REWORK),
                        "\xf0\x9f\xa4\x96 AI/Rework");
}
