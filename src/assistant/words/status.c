#include "assistant/words/status.h"

#include "base/check.h"

#define S(status) (1u << TIDE_ASSISTANT_##status)

/* What may follow each status, itself aside (AST2). */
static const unsigned follow[TIDE_ASSISTANT_STATUSES] = {
    [TIDE_ASSISTANT_NO_STATUS] = S(PENDING) | S(SKIPPED),
    [TIDE_ASSISTANT_PENDING] = S(DRAFTED) | S(SENT) | S(SKIPPED) | S(ARCHIVED),
    [TIDE_ASSISTANT_DRAFTED] =
        S(PENDING) | S(REWORK_REQUESTED) | S(SENT) | S(SKIPPED) | S(ARCHIVED),
    [TIDE_ASSISTANT_REWORK_REQUESTED] =
        S(PENDING) | S(DRAFTED) | S(SENT) | S(SKIPPED) | S(ARCHIVED),
    [TIDE_ASSISTANT_SENT] = S(PENDING) | S(SKIPPED) | S(ARCHIVED),
    [TIDE_ASSISTANT_SKIPPED] = S(PENDING) | S(ARCHIVED),
    [TIDE_ASSISTANT_ARCHIVED] = S(PENDING) | S(SKIPPED),
};

bool tide_assistant_may_follow(tide_assistant_status from, tide_assistant_status to)
{
    TIDE_ASSERT(from < TIDE_ASSISTANT_STATUSES);
    TIDE_ASSERT(to < TIDE_ASSISTANT_STATUSES);
    return (from == to && to != TIDE_ASSISTANT_NO_STATUS) || (follow[from] >> to & 1u) != 0;
}

static const char *const statuses[TIDE_ASSISTANT_STATUSES] = {
    "", "pending", "drafted", "rework_requested", "sent", "skipped", "archived"};
static const char *const categories[TIDE_ASSISTANT_CATEGORIES] = {
    "", "needs_response", "action_required", "payment_request", "fyi", "waiting"};
#define PARENT "\xf0\x9f\xa4\x96 AI"
static const char *const labels[TIDE_ASSISTANT_LABELS] = {
    PARENT,         PARENT "/Needs Response", PARENT "/Action Required", PARENT "/Payment Requests",
    PARENT "/FYI",  PARENT "/Waiting",        PARENT "/Outbox",          PARENT "/Rework",
    PARENT "/Done",
};

static unsigned find(const char *const *names, unsigned count, tide_text name)
{
    for (unsigned i = 1; i < count; i++)
        if (tide_text_equal(tide_text_of(names[i]), name))
            return i;
    return 0;
}

const char *tide_assistant_status_name(tide_assistant_status status)
{
    TIDE_ASSERT(status < TIDE_ASSISTANT_STATUSES);
    return statuses[status];
}

const char *tide_assistant_category_name(tide_assistant_category category)
{
    TIDE_ASSERT(category < TIDE_ASSISTANT_CATEGORIES);
    return categories[category];
}

const char *tide_assistant_label_name(tide_assistant_label label)
{
    TIDE_ASSERT(label < TIDE_ASSISTANT_LABELS);
    return labels[label];
}

tide_assistant_status tide_assistant_status_of(tide_text name)
{
    return (tide_assistant_status)find(statuses, TIDE_ASSISTANT_STATUSES, name);
}

tide_assistant_category tide_assistant_category_of(tide_text name)
{
    return (tide_assistant_category)find(categories, TIDE_ASSISTANT_CATEGORIES, name);
}

tide_assistant_label tide_assistant_label_of(tide_assistant_category category)
{
    TIDE_ASSERT(category > TIDE_ASSISTANT_NO_CATEGORY);
    TIDE_ASSERT(category < TIDE_ASSISTANT_CATEGORIES);
    return (tide_assistant_label)category;
}
