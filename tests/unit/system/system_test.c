/* system_test.c - the list of systems: finding one, and what a list must fulfil (E12). */
#include "support/test.h"
#include "system/system.h"

static bool owns_toys(const char *name)
{
    return strncmp(name, "toy-", 4) == 0;
}

static bool owns_b(const char *name)
{
    return strcmp(name, "b") == 0;
}

static const struct tide_system toy = {
    .name = "toy", .provider = "toys.example", .owns_entry = owns_toys};
static const struct tide_system other = {
    .name = "other", .provider = "other.example", .owns_entry = owns_b};
static const struct tide_system *const both[] = {&toy, &other, NULL};
static const struct tide_system *const none[] = {NULL};

TEST(a_system_is_found_by_name_provider_and_entry)
{
    assert_int_equal(tide_systems_count(both), 2);
    assert_int_equal(tide_systems_count(none), 0);
    assert_ptr_equal(tide_system_named(both, TIDE_TEXT("other")), &other);
    assert_null(tide_system_named(both, TIDE_TEXT("othe")));
    assert_null(tide_system_named(both, TIDE_TEXT("")));
    assert_ptr_equal(tide_system_of_provider(both, "toys.example"), &toy);
    assert_null(tide_system_of_provider(both, "toy"));
    assert_ptr_equal(tide_system_of_entry(both, "toy-1"), &toy);
    assert_ptr_equal(tide_system_of_entry(both, "b"), &other);
    assert_null(tide_system_of_entry(both, "lost+found"));
    assert_null(tide_system_of_entry(none, "b"));
}
