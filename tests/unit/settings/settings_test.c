/* Settings: four layers, typed values, refusals with a place, edits that keep
 * every other byte (E11); and the times, sizes and durations they are written in. */
#include "base/clocktext.h"
#include "base/rng.h"
#include "settings/settings.h"
#include "settings/url.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/heap.h"
#include "support/test.h"

#include <sys/wait.h>
#include <unistd.h>

static tide_settings *settings_of(tide_mem *mem)
{
    tide_settings *settings = NULL;
    OK(tide_settings_new(mem, &settings));
    return settings;
}

#define CASE(name)                                                                                 \
    TEST_OF(name, tide_settings *settings, settings_of(tide_mem_heap()), tide_settings_free)

static tide_status yaml_of(tide_settings *settings, const char *yaml, tide_error *err)
{
    return tide_settings_add_yaml(settings, "config.yaml", tide_text_of(yaml), err);
}

CASE(every_default_is_within_its_bounds)
{
    tide_error err = {0};
    if (tide_settings_check(settings, &err) != TIDE_OK)
        fail_msg("%s", err.text);
}

TEST(names_are_unique_also_in_the_environment)
{
    char a[TIDE_SETTING_TEXT_BYTES], b[TIDE_SETTING_TEXT_BYTES];
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        tide_setting_env_name((tide_setting)i, a);
        for (int j = i + 1; j < TIDE_SETTINGS_COUNT; j++) {
            tide_setting_env_name((tide_setting)j, b);
            assert_string_not_equal(a, b);
        }
        tide_setting found = TIDE_SETTINGS_COUNT;
        const char *name = tide_setting_info((tide_setting)i)->name;
        assert_true(tide_setting_find(tide_text_of(name), &found));
        assert_int_equal(found, i);
    }
}

CASE(the_highest_layer_wins_and_is_named)
{
    tide_error err = {0};
    char origin[TIDE_SETTING_TEXT_BYTES * 2];
    const char *environment[] = {"PATH=/bin", "TIDEMARK_WORKERS_COUNT=10", "TIDEMARK_HOME=/x",
                                 NULL};

    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 16);
    tide_setting_origin(settings, TIDE_SET_WORKERS_COUNT, origin);
    assert_string_equal(origin, "default");

    OK(yaml_of(settings, "# us\nworkers:\n  count: 8\nstall.after: 90s\n", &err));
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 8);
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_STALL_AFTER), 90000);
    tide_setting_origin(settings, TIDE_SET_WORKERS_COUNT, origin);
    assert_string_equal(origin, "config.yaml:3");

    OK(tide_settings_add_environment(settings, environment, &err));
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 10);
    tide_setting_origin(settings, TIDE_SET_WORKERS_COUNT, origin);
    assert_string_equal(origin, "env TIDEMARK_WORKERS_COUNT");

    OK(tide_settings_add_flag(settings, "workers.count=12", &err));
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 12);
    tide_setting_origin(settings, TIDE_SET_WORKERS_COUNT, origin);
    assert_string_equal(origin, "flag");
}

CASE(values_are_read_in_their_units)
{
    static const struct {
        const char *assignment;
        tide_setting setting;
        uint64_t number;
    } cases[] = {
        {"governor.large_above=128MiB", TIDE_SET_GOVERNOR_LARGE_ABOVE, 128ull << 20},
        {"lanes.interactive_below=5MB", TIDE_SET_LANES_INTERACTIVE_BELOW, 5000000},
        {"retry.backoff_start=500ms", TIDE_SET_RETRY_BACKOFF_START, 500},
        {"purge.after=2w", TIDE_SET_PURGE_AFTER, 14 * TIDE_MS_DAY},
        {"retry.backoff_max=1h30m", TIDE_SET_RETRY_BACKOFF_MAX, 90 * TIDE_MS_MINUTE},
        {"alerts.bad_warn=0.2%", TIDE_SET_ALERTS_BAD_WARN, 2},
        {"alerts.bad_warn=7", TIDE_SET_ALERTS_BAD_WARN, 7},
        {"governor.share=95%", TIDE_SET_GOVERNOR_SHARE, 950},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = {0};
        OK(tide_settings_add_flag(settings, cases[i].assignment, &err));
        assert_int_equal(tide_setting_u64(settings, cases[i].setting), cases[i].number);
    }
}

/* What is refused must say where and why, and must change nothing (SET4). */
TEST(a_wrong_file_is_refused_with_its_line)
{
    static const struct {
        const char *yaml;
        const char *where;
        const char *why;
    } cases[] = {
        {"workers.count: 8\nworkers.cuont: 9\n", "config.yaml:2", "did you mean \"workers.count\""},
        {"workers:\n  count: many\n", "config.yaml:2", "must be a whole number"},
        {"\n\nworkers.count: 0\n", "config.yaml:3", "between 1 and 64"},
        {"stall.after: 5\n", "config.yaml:1", "a duration like"},
        {"workers.count: 8\nworkers:\n  count: 9\n", "config.yaml:3", "first in line 1"},
        {"workers: {count: 8}\nworkers: {count: 9}\n", "config.yaml:2", "given twice"},
        {"workers.count: [8]\n", "config.yaml:1", "lists"},
        {"workers.count: &a 8\n", "config.yaml:1", "anchors"},
        {"workers.count: 8\n---\nstall.after: 1m\n", "config.yaml:2", "second document"},
        {"workers.count: \"8\n", "config.yaml:1", "not YAML"},
        {"%# : \xb8\n", "config.yaml:1", "directives are not used"},
        {"workers.count: 8\n# \xb8\n", "config.yaml:2", "not UTF-8"},
        {"# \x1c\n", "config.yaml:1", "control character"},
        {"a: [1\nb: 2", "config.yaml:", ""},
        {"workers:\n  count:\n", "config.yaml:2", "no value"},
        {"just words\n", "config.yaml:1", "expected"},
        {"log.level: loud\n", "config.yaml:1", "debug|info|warn|error|none"},
        {"bandwidth.schedule: \"moon 08:00-09:00 full\"\n", "config.yaml:1", "days are"},
        {"a:\n b:\n  c:\n   d:\n    e:\n     f:\n      g: 1\n", "config.yaml:", "too deeply"},
        {"accounts:\n  ada@example.com:\n    workers.count: 3\n", "config.yaml:3",
         "workers.count is for all accounts together"},
        {"accounts:\n  ada:\n    governor:\n      shar: 50%\n", "config.yaml:4",
         "did you mean \"governor.share\""},
        {"workers.count: 8\naccounts.ada.governor.share: 5%\n", "config.yaml:2",
         "accounts.ada.governor.share: \"5%\" must be between"},
        {"accounts:\n  ada: 3\n", "config.yaml:2", "there is no setting \"accounts.ada\""},
        {"accounts.ada.governor.cut: 50%\naccounts: {ada: {governor: {cut: 40%}}}\n",
         "config.yaml:2", "given twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = {0};
        tide_settings *settings = settings_of(tide_mem_heap());
        tide_status rc = yaml_of(settings, cases[i].yaml, &err);
        if (rc != TIDE_INVALID || strstr(err.text, cases[i].where) == NULL ||
            strstr(err.text, cases[i].why) == NULL)
            fail_msg("case %zu: %d %s", i, (int)rc, err.text);
        assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 16);
        tide_settings_free(settings);
    }
}

CASE(a_wrong_variable_or_flag_is_refused_by_name)
{
    tide_error err = {0};
    const char *unknown[] = {"TIDEMARK_WORKERS=1", NULL};
    const char *wrong[] = {"TIDEMARK_STALL_AFTER=soon", NULL};
    assert_int_equal(tide_settings_add_environment(settings, unknown, &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "TIDEMARK_WORKERS"));
    assert_int_equal(tide_settings_add_environment(settings, wrong, &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "environment TIDEMARK_STALL_AFTER"));
    assert_int_equal(tide_settings_add_flag(settings, "workers.count", &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "name=value"));
    assert_int_equal(tide_settings_add_flag(settings, "workers.count=-1", &err), TIDE_INVALID);
    const char *own[] = {"TIDEMARK_ACCOUNTS_ADA_GOVERNOR_SHARE=50%", NULL};
    assert_int_equal(tide_settings_add_environment(settings, own, &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "in the file or with --set"));
}

/* ---- one account alone (E11.2) ------------------------------------------------------------ */

/* Names of accounts have dots: where the name of the setting begins is found only because no
 * setting's name ends with another one. */
TEST(no_name_of_a_setting_ends_with_another_one)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        for (int j = 0; j < TIDE_SETTINGS_COUNT; j++) {
            const char *name = tide_setting_info((tide_setting)i)->name;
            const char *end = tide_setting_info((tide_setting)j)->name;
            if (strlen(name) > strlen(end) && name[strlen(name) - strlen(end) - 1] == '.' &&
                strcmp(name + strlen(name) - strlen(end), end) == 0)
                fail_msg("%s ends with %s", name, end);
        }
}

static uint64_t share_of(const tide_settings *settings, const char *account)
{
    return tide_setting_u64(tide_settings_of(settings, account), TIDE_SET_GOVERNOR_SHARE);
}

CASE(what_is_set_for_one_account_counts_for_it_whatever_counts_for_all)
{
    tide_error err = {0};
    char text[TIDE_SETTING_TEXT_BYTES * 2], name[TIDE_SETTING_NAME_BYTES];
    OK(yaml_of(settings,
               "governor.share: 90%\n"
               "accounts:\n"
               "  ada@example.com:\n"
               "    governor:\n"
               "      share: 50%\n"
               "      gmail.window_units: 15000\n"
               "  'sc-domain:example.org':\n"
               "    governor.share: 60%\n"
               "accounts.bob.governor.share: 70%\n",
               &err));
    assert_int_equal(share_of(settings, "ada@example.com"), 500);
    assert_int_equal(share_of(settings, "sc-domain:example.org"), 600);
    assert_int_equal(share_of(settings, "bob"), 700);
    assert_int_equal(share_of(settings, "eve"), 900);
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_GOVERNOR_SHARE), 900);

    const char *environment[] = {"TIDEMARK_GOVERNOR_SHARE=80%", "TIDEMARK_GOVERNOR_CUT=40%", NULL};
    OK(tide_settings_add_environment(settings, environment, &err));
    OK(tide_settings_add_flag(settings, "accounts.bob.governor.share=30%", &err));
    assert_int_equal(share_of(settings, "ada@example.com"), 500);
    assert_int_equal(share_of(settings, "bob"), 300);
    assert_int_equal(share_of(settings, "eve"), 800);
    const tide_settings *ada = tide_settings_of(settings, "ada@example.com");
    assert_int_equal(tide_setting_u64(ada, TIDE_SET_GOVERNOR_CUT), 400); /* what it lacks */

    tide_setting_origin(ada, TIDE_SET_GOVERNOR_SHARE, text);
    assert_string_equal(text, "config.yaml:5");
    tide_setting_name(ada, TIDE_SET_GOVERNOR_SHARE, name);
    assert_string_equal(name, "accounts.ada@example.com.governor.share");
    tide_setting_origin(ada, TIDE_SET_GOVERNOR_CUT, text);
    assert_string_equal(text, "env TIDEMARK_GOVERNOR_CUT");
    tide_setting_name(ada, TIDE_SET_GOVERNOR_CUT, name);
    assert_string_equal(name, "governor.cut");
    assert_true(tide_setting_is_own(ada, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS));
    assert_false(tide_setting_is_own(ada, TIDE_SET_GOVERNOR_CUT));

    size_t cursor = 0;
    assert_string_equal(tide_settings_account(settings, &cursor), "ada@example.com");
    assert_string_equal(tide_settings_account(settings, &cursor), "sc-domain:example.org");
    assert_string_equal(tide_settings_account(settings, &cursor), "bob");
    assert_null(tide_settings_account(settings, &cursor));
    OK(tide_settings_check(settings, &err));

    /* SET4: a file that is refused changes nothing for anyone. */
    assert_int_equal(
        yaml_of(settings, "accounts.ada@example.com.governor.share: 20%\nx: 1\n", &err),
        TIDE_INVALID);
    assert_int_equal(share_of(settings, "ada@example.com"), 500);
    assert_int_equal(share_of(settings, "bob"), 300);
}

CASE(a_former_name_sets_what_it_was_renamed_to)
{
    tide_error err = {0};
    OK(yaml_of(settings, "governor.graph.in_flight_max: 12\n", &err));
    OK(tide_settings_add_flag(settings, "accounts.bob.governor.graph.in_flight_start=3", &err));
    assert_int_equal(tide_setting_u32(settings, TIDE_SET_GOVERNOR_ONEDRIVE_IN_FLIGHT_MAX), 12);
    assert_int_equal(tide_setting_u32(tide_settings_of(settings, "bob"),
                                      TIDE_SET_GOVERNOR_ONEDRIVE_IN_FLIGHT_START),
                     3);
}

TEST(values_of_one_account_must_agree_with_those_of_all)
{
    static const char *const wrong[][3] = {
        {"alerts.bad_critical=1%", "accounts.ada.alerts.bad_warn=5%",
         "accounts.ada.alerts.bad_warn = 5% (flag) must be at most alerts.bad_critical = 1%"},
        {"breaker.pause_max=5m", "accounts.ada.breaker.pause_first=10m", "must be at most"},
        {"workers.count=8", "accounts.ada.governor.gmail.window_units=399",
         "accounts.ada.governor.gmail.window_units = 399 (flag) must be 0"},
        {"workers.count=8", "accounts.ada.governor.onedrive.window_units=99",
         "accounts.ada.governor.onedrive.window_units = 99 (flag) must be 0"},
        {"workers.count=8", "accounts.ada.governor.gmail.project_units=5000",
         "accounts.ada.governor.project"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tide_error err = {0};
        tide_settings *settings = settings_of(tide_mem_heap());
        OK(tide_settings_add_flag(settings, wrong[i][0], &err));
        OK(tide_settings_add_flag(settings, wrong[i][1], &err));
        if (tide_settings_check(settings, &err) != TIDE_INVALID ||
            strstr(err.text, wrong[i][2]) == NULL)
            fail_msg("case %zu: %s", i, err.text);
        tide_settings_free(settings);
    }
}

CASE(accounts_with_settings_of_their_own_have_a_bound)
{
    tide_error err = {0};
    char flag[100];
    for (int i = 0; i < TIDE_SETTINGS_ACCOUNTS_MAX; i++) {
        (void)snprintf(flag, sizeof flag, "accounts.a%d.governor.share=50%%", i);
        OK(tide_settings_add_flag(settings, flag, &err));
    }
    assert_int_equal(tide_settings_add_flag(settings, "accounts.more.governor.share=50%", &err),
                     TIDE_FULL);
    assert_int_equal(share_of(settings, "more"), 1000);
    OK(tide_settings_add_flag(settings, "accounts.a7.governor.share=60%", &err));
    assert_int_equal(share_of(settings, "a7"), 600);
}

TEST(values_that_bound_each_other_must_agree)
{
    static const char *const wrong[][2] = {
        {"tracker.refill_below=900", "tracker.refill_to=90%"},
        {"retry.backoff_start=10m", "retry.backoff_max=5m"},
        {"workers.count=4", "workers.reserved_bulk=2"},
        {"alerts.bad_warn=5%", "alerts.bad_critical=1%"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tide_error err = {0};
        tide_settings *settings = settings_of(tide_mem_heap());
        OK(tide_settings_add_flag(settings, wrong[i][0], &err));
        OK(tide_settings_add_flag(settings, wrong[i][1], &err));
        assert_int_equal(tide_settings_check(settings, &err), TIDE_INVALID);
        assert_non_null(strstr(err.text, "must be"));
        tide_settings_free(settings);
    }
}

CASE(a_schedule_is_read_as_windows_of_the_week)
{
    tide_error err = {0};
    struct tide_setting_window w[TIDE_SETTING_WINDOWS_MAX];
    assert_int_equal(tide_setting_windows(settings, TIDE_SET_BANDWIDTH_SCHEDULE, w), 0);
    OK(yaml_of(settings,
               "bandwidth.schedule: 'mon-fri 08:00-18:00 500KiB; sat-mon,wed 22:30-06:00 "
               "down=1MiB up=2MB; 00:00-24:00 full'\n",
               &err));
    assert_int_equal(tide_setting_windows(settings, TIDE_SET_BANDWIDTH_SCHEDULE, w), 3);
    assert_int_equal(w[0].days, 0x1f);
    assert_int_equal(w[0].from_minute, 480);
    assert_int_equal(w[0].to_minute, 1080);
    assert_int_equal(w[0].both_bytes_per_s, 512000);
    assert_int_equal(w[1].days, 0x65); /* Saturday, Sunday, Monday, Wednesday */
    assert_int_equal(w[1].from_minute, 1350);
    assert_int_equal(w[1].down_bytes_per_s, 1 << 20);
    assert_int_equal(w[1].up_bytes_per_s, 2000000);
    assert_int_equal(w[2].days, 0x7f);
    assert_int_equal(w[2].to_minute, 1440);
    assert_int_equal(w[2].both_bytes_per_s, 0);
}

TEST(a_password_in_a_url_is_found_and_never_shown)
{
    static const struct {
        const char *url, *shown; /* NULL: it has no password */
    } cases[] = {
        {"postgres://host/db", NULL},
        {"postgres://user@host:5432/db", NULL},
        {"postgres://user:@host/db", NULL},
        {"postgres://host:5432/db?user=a&sslmode=verify-full", NULL},
        {"postgres:///db?host=/run/pg&user=a@b", NULL},
        {"postgres://host/db?password=", NULL},
        {"postgres://host/a:b@c", NULL},
        {"", NULL},
        {"postgres://user:secret@host:5432/db", "postgres://user:***@host:5432/db"},
        {"postgresql://user:se:c/ret@host/db", NULL}, /* libpq reads no password there either */
        {"postgres://user:sec?ret@host/db", "postgres://user:***@host/db"},
        {"postgres://user:sec@ret@host/db", "postgres://user:***@host/db"},
        {"postgres://:secret@host", "postgres://:***@host"},
        {"postgres://host/db?password=secret", "postgres://host/db?password=***"},
        {"postgres://host/db?a=1&p%61ss%77ord=secret&b=2",
         "postgres://host/db?a=1&p%61ss%77ord=***&b=2"},
        {"postgres://u:one@host/db?sslpassword=two&password=three&x=y",
         "postgres://u:***@host/db?sslpassword=***&password=***&x=y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char shown[256];
        const tide_text url = tide_text_of(cases[i].url);
        assert_int_equal(tide_url_has_password(url), cases[i].shown != NULL);
        tide_url_masked(url, shown, sizeof shown);
        assert_string_equal(shown, cases[i].shown == NULL ? cases[i].url : cases[i].shown);
        char small[12];
        tide_url_masked(url, small, sizeof small);
        assert_true(strlen(small) < sizeof small);
    }

    tide_settings *settings = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    char printed[TIDE_SETTING_TEXT_BYTES];
    OK(tide_settings_new(tide_mem_heap(), &settings));
    OK(tide_settings_add_flag(settings, "ledger.url=postgres://a:b@c/d", &err));
    tide_setting_print(settings, TIDE_SET_LEDGER_URL, printed);
    assert_string_equal(printed, "postgres://a:***@c/d");
    assert_string_equal(tide_setting_text(settings, TIDE_SET_LEDGER_URL), "postgres://a:b@c/d");
    /* A mistyped one has its password all the same. */
    assert_int_equal(tide_settings_add_flag(settings, "ledger.url=postgre://a:secret@c/d", &err),
                     TIDE_INVALID);
    assert_null(strstr(err.text, "secret"));
    tide_settings_free(settings);
}

TEST(an_edit_changes_one_value_and_no_other_byte)
{
    static const struct {
        const char *before, *name, *value, *after;
    } cases[] = {
        {"", "workers.count", "8", "workers.count: 8\n"},
        {"# mine\nworkers:\n  count: 4  # few\n  reserved_bulk: 1\n", "workers.count", "32",
         "# mine\nworkers:\n  count: 32  # few\n  reserved_bulk: 1\n"},
        {"stall.after: \"5m\" # x\n", "stall.after", "20m", "stall.after: 20m # x\n"},
        {"stall.after: '5m'", "workers.count", "8", "stall.after: '5m'\nworkers.count: 8\n"},
        {"# only words\n", "bandwidth.schedule", "08:00-09:00 full",
         "# only words\nbandwidth.schedule: '08:00-09:00 full'\n"},
        {"bandwidth:\n  schedule: ''\n", "bandwidth.schedule", "08:00-09:00 1MiB; 09:00-10:00 full",
         "bandwidth:\n  schedule: '08:00-09:00 1MiB; 09:00-10:00 full'\n"},
        {"", "accounts.ada@example.com.governor.share", "50%",
         "accounts.ada@example.com.governor.share: 50%\n"},
        {"accounts:\n  ada@example.com:\n    governor:\n      share: 90% # most\n",
         "accounts.ada@example.com.governor.share", "50%",
         "accounts:\n  ada@example.com:\n    governor:\n      share: 50% # most\n"},
        {"accounts:\n  ada:\n    governor.share: 90%\n", "accounts.bob.governor.share", "50%",
         "accounts:\n  ada:\n    governor.share: 90%\naccounts.bob.governor.share: 50%\n"},
        {"", "accounts.it's: # odd.governor.share", "50%",
         "'accounts.it''s: # odd.governor.share': 50%\n"},
        {"governor.share: 1000\n", "accounts.ada.governor.share", "1000",
         "governor.share: 1000\naccounts.ada.governor.share: 1000\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = {0};
        tide_buf edited = heap_buf(1 << 16);
        tide_status rc = tide_settings_edit_yaml(
            "config.yaml", tide_text_of(cases[i].before), tide_text_of(cases[i].name),
            tide_text_of(cases[i].value), tide_mem_heap(), &edited, &err);
        if (rc != TIDE_OK)
            fail_msg("case %zu: %s", i, err.text);
        assert_string_equal(tide_buf_cstr(&edited), cases[i].after);
        tide_buf_done(&edited);
    }
}

TEST(an_edit_that_cannot_be_safe_is_refused)
{
    static const char *const cases[][3] = {
        {"{workers.count: 8}\n", "stall.after", "1m"}, /* the end is not a line of the mapping */
        {"workers.count: 8\n...\n", "stall.after", "1m"},
        {"bandwidth.schedule: |\n  08:00-09:00 full\n", "bandwidth.schedule", "09:00-10:00 full"},
        {"workers.cuont: 8\n", "stall.after", "1m"}, /* wrong already */
        {"", "workers.count", "65"},
        {"", "workers.reserved_bulk", "14"}, /* does not agree with the others */
        {"", "no.such", "1"},
        {"", "accounts.ada.no.such", "1"},
        {"", "accounts.ada.workers.count", "8"},
        {"accounts:\n  ada: {governor.share: 50%}\n...\n", "accounts.bob.governor.share", "50%"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = {0};
        tide_buf edited = heap_buf(1 << 16);
        tide_status rc = tide_settings_edit_yaml(
            "config.yaml", tide_text_of(cases[i][0]), tide_text_of(cases[i][1]),
            tide_text_of(cases[i][2]), tide_mem_heap(), &edited, &err);
        if (rc != TIDE_INVALID || err.text[0] == '\0')
            fail_msg("case %zu: status %d %s", i, (int)rc, err.text);
        tide_buf_done(&edited);
    }
}

TEST(a_setting_is_removed_with_its_line_and_no_other)
{
    static const struct {
        const char *before, *name, *after; /* NULL: refused */
        bool found;
    } cases[] = {
        {"", "workers.count", "", false},
        {"# mine\n", "workers.count", "# mine\n", false},
        {"workers.count: 8", "workers.count", "", true},
        {"# mine\nworkers.count: 8 # few\nstall.after: 5m\n", "workers.count",
         "# mine\nstall.after: 5m\n", true},
        {"workers:\n  count: 4\n  reserved_bulk: 1\n", "workers.count",
         "workers:\n  reserved_bulk: 1\n", true},
        /* The last one below a name: the name goes, too, and what is said about it stays. */
        {"workers:\n  # few\n\n  count: 4\nstall.after: 5m\n", "workers.count",
         "  # few\n\nstall.after: 5m\n", true},
        {"accounts:\n  ada@example.com:\n    governor:\n      share: 90%\n",
         "accounts.ada@example.com.governor.share", "", true},
        {"accounts:\n  ada:\n    governor.share: 90%\n  bob:\n    governor.share: 80%\n",
         "accounts.ada.governor.share", "accounts:\n  bob:\n    governor.share: 80%\n", true},
        {"accounts:\n  ada:\n    governor.share: 90%\n  bob:\n    governor.share: 80%\n",
         "accounts.bob.governor.share", "accounts:\n  ada:\n    governor.share: 90%\n", true},
        /* What is set for one account is not what is set for all. */
        {"governor.share: 90%\naccounts.ada.governor.share: 80%\n", "governor.share",
         "accounts.ada.governor.share: 80%\n", true},
        {"governor.share: 90%\n", "accounts.ada.governor.share", "governor.share: 90%\n", false},
        /* Under its former name, and under both. */
        {"governor.graph.in_flight_max: 9\n", "governor.onedrive.in_flight_max", "", true},
        {"governor.graph.in_flight_max: 9\nstall.after: 5m\ngovernor.onedrive.in_flight_max: 8\n",
         "governor.onedrive.in_flight_max", "stall.after: 5m\n", true},
        {"workers: {count: 8}\n", "workers.count", "", true},
        {"workers: {count: 8, reserved_bulk: 1}\n", "workers.count", NULL, false},
        {"bandwidth.schedule: |\n  08:00-09:00 full\n", "bandwidth.schedule", NULL, false},
        {"workers.cuont: 8\nstall.after: 5m\n", "stall.after", NULL, false}, /* wrong already */
        /* What is left does not agree. */
        {"workers.count: 32\nworkers.reserved_bulk: 20\n", "workers.count", NULL, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = {0};
        bool found = false;
        tide_buf edited = heap_buf(1 << 16);
        const tide_status rc = tide_settings_unset_yaml(
            "config.yaml", tide_text_of(cases[i].before), tide_text_of(cases[i].name),
            tide_mem_heap(), &edited, &found, &err);
        if (rc != (cases[i].after == NULL ? TIDE_INVALID : TIDE_OK))
            fail_msg("case %zu: status %d %s", i, (int)rc, err.text);
        if (cases[i].after != NULL && strcmp(tide_buf_cstr(&edited), cases[i].after) != 0)
            fail_msg("case %zu: \"%s\"", i, tide_buf_cstr(&edited));
        assert_int_equal(found, cases[i].found);
        tide_buf_done(&edited);
    }
}

static void note_difference(void *arg, const tide_settings *before, const tide_settings *after,
                            tide_setting setting)
{
    char *text = arg;
    char name[TIDE_SETTING_NAME_BYTES], was[TIDE_SETTING_TEXT_BYTES], is[TIDE_SETTING_TEXT_BYTES];
    tide_setting_name(tide_setting_is_own(before, setting) ? before : after, setting, name);
    tide_setting_print(before, setting, was);
    tide_setting_print(after, setting, is);
    (void)snprintf(text + strlen(text), 400 - strlen(text), "%s %s>%s;", name, was, is);
}

TEST(two_files_differ_in_what_they_set_for_all_and_for_one_account)
{
    static const struct {
        const char *before, *after, *different;
    } cases[] = {
        {"", "", ""},
        {"workers.count: 8\n", "workers: {count: 8} # the same\n", ""},
        {"workers.count: 8\n", "", "workers.count 8>16;"},
        {"", "accounts.ada.archive.guard: 9\n", "accounts.ada.archive.guard 1000>9;"},
        {"accounts.ada.archive.guard: 9\n", "", "accounts.ada.archive.guard 9>1000;"},
        {"accounts.ada.archive.guard: 9\n", "accounts.bob.archive.guard: 9\n",
         "accounts.ada.archive.guard 9>1000;accounts.bob.archive.guard 1000>9;"},
        /* An account without a value of its own follows what all have: that is one difference. */
        {"accounts.ada.governor.share: 90%\n",
         "accounts.ada.governor.share: 90%\narchive.guard: 8\n", "archive.guard 1000>8;"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_error err = {0};
        char text[400] = "";
        tide_settings *before = settings_of(tide_mem_heap()), *after = settings_of(tide_mem_heap());
        OK(tide_settings_add_yaml(before, "a", tide_text_of(cases[i].before), &err));
        OK(tide_settings_add_yaml(after, "b", tide_text_of(cases[i].after), &err));
        tide_settings_differences(before, after, note_difference, text);
        if (strcmp(text, cases[i].different) != 0)
            fail_msg("case %zu: %s", i, text);
        tide_settings_free(before);
        tide_settings_free(after);
    }
}

/* Random YAML-like bytes: whatever comes, it is a status, never a crash, and a
 * refused file leaves every value as it was. */
TEST(random_files_are_accepted_or_refused_whole)
{
    static const char *const pieces[] = {"workers", ":",  " ",   "\n",  "count", "8", ".",
                                         "\"",      "'",  "[",   "]",   "{",     "}", "&",
                                         "*",       "- ", "|",   "# ",  "stall", "?", "after",
                                         "5m",      "\t", "---", "...", "\xff",  ","};
    uint64_t seed = 20260504;
    tide_rng rng = tide_rng_seeded(seed);
    for (long round = (long)scaled(20000); round > 0; round--) {
        char yaml[256];
        size_t bytes = 0;
        for (uint64_t n = tide_rng_below(&rng, 20); n > 0; n--) {
            const char *piece = pieces[tide_rng_below(&rng, sizeof pieces / sizeof pieces[0])];
            memcpy(yaml + bytes, piece, strlen(piece));
            bytes += strlen(piece);
        }
        tide_error err = {0};
        tide_settings *settings = settings_of(tide_mem_heap());
        tide_status rc = tide_settings_add_yaml(settings, "x", (tide_text){yaml, bytes}, &err);
        bool changed = tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT) != 16 ||
                       tide_setting_u64(settings, TIDE_SET_STALL_AFTER) != 10 * TIDE_MS_MINUTE;
        if (rc != TIDE_OK && (rc != TIDE_INVALID || err.text[0] == '\0' || changed))
            fail_msg("seed %" PRIu64 " round %ld: %d %s", seed, round, (int)rc, err.text);
        tide_settings_free(settings);
    }
}

CASE(printed_values_are_read_back_the_same)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        char value[TIDE_SETTING_TEXT_BYTES], again[TIDE_SETTING_TEXT_BYTES];
        char assignment[TIDE_SETTING_TEXT_BYTES * 2];
        tide_error err = {0};
        tide_setting_print(settings, (tide_setting)i, value);
        (void)snprintf(assignment, sizeof assignment, "%s=%s",
                       tide_setting_info((tide_setting)i)->name, value);
        if (tide_settings_add_flag(settings, assignment, &err) != TIDE_OK)
            fail_msg("%s", err.text);
        tide_setting_print(settings, (tide_setting)i, again);
        assert_string_equal(value, again);
    }
}

TEST(times_durations_and_sizes_survive_print_and_parse)
{
    uint64_t seed = 77;
    tide_rng rng = tide_rng_seeded(seed);
    for (long round = (long)scaled(1000000); round > 0; round--) {
        char text[TIDE_TIME_TEXT_BYTES];
        uint64_t back = 0;
        uint64_t time_ms = 1 + tide_rng_below(&rng, 253402300799999ull);
        tide_time_format(time_ms, text);
        if (!tide_time_parse(tide_text_of(text), &back) || back != time_ms)
            fail_msg("seed %" PRIu64 ": time %" PRIu64 " -> %s", seed, time_ms, text);
        uint64_t number = tide_rng_next(&rng) >> tide_rng_below(&rng, 64);
        tide_duration_format(number, text);
        if (!tide_duration_parse(tide_text_of(text), &back) || back != number)
            fail_msg("seed %" PRIu64 ": duration %" PRIu64 " -> %s", seed, number, text);
        tide_size_format(number, text);
        if (!tide_size_parse(tide_text_of(text), &back) || back != number)
            fail_msg("seed %" PRIu64 ": size %" PRIu64 " -> %s", seed, number, text);
    }
}

TEST(known_times_are_printed_right)
{
    static const struct {
        uint64_t unix_ms;
        const char *text;
    } cases[] = {
        {1, "1970-01-01T00:00:00.001Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {1709210096789, "2024-02-29T12:34:56.789Z"},
        {4107542399999, "2100-02-28T23:59:59.999Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
    };
    static const char *const wrong[] = {
        "",           "2023-02-29", "2026-13-01", "2026-01-01T24:00", "2026-01-01T00:00:00+01:00",
        "1969-12-31", "26-1-1"};
    char text[TIDE_TIME_TEXT_BYTES];
    uint64_t back = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_time_format(cases[i].unix_ms, text);
        assert_string_equal(text, cases[i].text);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(tide_time_parse(tide_text_of(wrong[i]), &back));
    assert_true(tide_time_parse(TIDE_TEXT("2026-05-04 03:02"), &back));
    tide_time_format(back, text);
    assert_string_equal(text, "2026-05-04T03:02:00.000Z");
    tide_time_format(UINT64_MAX, text);
    assert_string_equal(text, "never");
}

TEST(amounts_that_overflow_are_refused)
{
    uint64_t number = 5;
    assert_false(tide_duration_parse(TIDE_TEXT("18446744073709551615d"), &number));
    assert_false(tide_duration_parse(TIDE_TEXT("10"), &number));
    assert_false(tide_duration_parse(TIDE_TEXT("10x"), &number));
    assert_false(tide_duration_parse(TIDE_TEXT(""), &number));
    assert_false(tide_size_parse(TIDE_TEXT("99999999999TiB"), &number));
    assert_false(tide_size_parse(TIDE_TEXT("-1"), &number));
    assert_int_equal(number, 5); /* CLK2 */
    char text[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(1610612736, text);
    assert_string_equal(text, "1.5 GiB");
    tide_duration_human(183900000, text);
    assert_string_equal(text, "2 d 3 h");
}

static void write_file(tide_world *world, const char *path, const char *text)
{
    OK(tide_file_replace(world, path, tide_text_of(text), 0600, NULL));
}

static tide_status reload(tide_settings *settings, tide_world *world,
                          bool changed[TIDE_SETTINGS_COUNT], bool restart[TIDE_SETTINGS_COUNT],
                          tide_error *err)
{
    tide_settings *fresh = NULL;
    tide_status rc = tide_settings_again(settings, world, &fresh, err);
    if (rc == TIDE_OK)
        rc = tide_settings_take(settings, fresh, changed, restart, err);
    tide_settings_free(fresh);
    return rc;
}

/* E11.1: live ones change on a running engine, the others wait for the next
 * start, and a file that became wrong changes nothing. */
TEST(a_reload_tells_what_changed)
{
    tide_error err = {0};
    tide_world *world = NULL;
    tide_settings *settings = NULL;
    bool changed[TIDE_SETTINGS_COUNT], restart[TIDE_SETTINGS_COUNT];
    char dir[] = "/tmp/tide-settings-XXXXXX", path[64], lock[64];
    const char *flags[] = {"retry.attempts_max=9"};
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/config.yaml", dir);
    (void)snprintf(lock, sizeof lock, "%s/.config.yaml.lock", dir);
    struct tide_settings_sources sources = {.file = path, .flags = flags, .flags_count = 1};

    OK(tide_world_real_new(tide_mem_heap(), &world, &err));
    /* No file at all is fine. */
    OK(tide_settings_load(world, &sources, tide_mem_heap(), &settings, &err));
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 16);

    write_file(world, path, "workers.count: 8\ntracker.window_jobs: 500\nretry.attempts_max: 3\n");
    OK(reload(settings, world, changed, restart, &err));
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        assert_int_equal(changed[i], i == TIDE_SET_WORKERS_COUNT);
        assert_int_equal(restart[i], i == TIDE_SET_TRACKER_WINDOW_JOBS);
    }
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 8);
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_TRACKER_WINDOW_JOBS), 10000);
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_RETRY_ATTEMPTS_MAX), 9); /* the flag */

    write_file(world, path, "workers.count: 32\nworkers.reserved_bulk: x\n");
    assert_int_equal(reload(settings, world, changed, restart, &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "config.yaml:2"));
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 8);

    write_file(world, path, "# nothing\n");
    OK(tide_settings_edit_file(world, path, TIDE_TEXT("workers.count"), TIDE_TEXT("24"),
                               tide_mem_heap(), &err));
    OK(reload(settings, world, changed, restart, &err));
    assert_true(changed[TIDE_SET_WORKERS_COUNT]);
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 24);

    assert_string_equal(tide_settings_file(settings), path);
    tide_settings_free(settings);

    /* Put together by hand: there is nothing to read again, and nothing is lost. */
    settings = settings_of(tide_mem_heap());
    OK(tide_settings_add_flag(settings, "workers.count=7", &err));
    OK(reload(settings, world, changed, restart, &err));
    assert_false(changed[TIDE_SET_WORKERS_COUNT]);
    assert_int_equal(tide_setting_u64(settings, TIDE_SET_WORKERS_COUNT), 7);
    assert_null(tide_settings_file(settings));

    tide_settings_free(settings);
    tide_world_real_free(world);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* Sets one setting again and again, and reads it back each time; never returns. */
static void edit_alone(const char *path, const char *name, tide_setting setting, const int ready[2])
{
    enum { EDITS = 40 };
    tide_world *world = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_settings_sources sources = {.file = path};
    char go = 0;
    bool right = tide_world_real_new(tide_mem_heap(), &world, &err) == TIDE_OK &&
                 close(ready[1]) == 0 && read(ready[0], &go, 1) == 0; /* both begin at once */
    for (uint64_t i = 1; right && i <= EDITS; i++) {
        char value[8];
        tide_settings *settings = NULL;
        (void)snprintf(value, sizeof value, "%u", (unsigned)i);
        right = tide_settings_edit_file(world, path, tide_text_of(name), tide_text_of(value),
                                        tide_mem_heap(), &err) == TIDE_OK &&
                tide_settings_load(world, &sources, tide_mem_heap(), &settings, &err) == TIDE_OK &&
                tide_setting_u64(settings, setting) == i;
        tide_settings_free(settings);
    }
    _exit(right ? 0 : 1);
}

TEST(two_processes_that_change_the_file_lose_no_change)
{
    static const char *const names[] = {"retry.attempts_max", "archive.guard"};
    static const tide_setting settings[] = {TIDE_SET_RETRY_ATTEMPTS_MAX, TIDE_SET_ARCHIVE_GUARD};
    char dir[] = "/tmp/tide-settings-XXXXXX";
    char path[64], lock[64];
    int ready[2];
    pid_t children[2];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/config.yaml", dir);
    (void)snprintf(lock, sizeof lock, "%s/.config.yaml.lock", dir);
    assert_int_equal(pipe(ready), 0);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            edit_alone(path, names[i], settings[i], ready);
    }
    assert_int_equal(close(ready[1]), 0);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(close(ready[0]), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(rmdir(dir), 0);
}

struct news {
    char text[400];
};

static void take_news(void *arg, const char *account, tide_setting setting, bool later)
{
    struct news *news = arg;
    const size_t used = strlen(news->text);
    (void)snprintf(news->text + used, sizeof news->text - used, "%s %s%s;",
                   account == NULL ? "all" : account, tide_setting_info(setting)->name,
                   later ? " later" : "");
}

/* E11.2: the same for one account; what cannot change now stays as it counted for that account. */
TEST(a_reload_changes_what_counts_for_one_account)
{
    static const struct {
        const char *yaml, *news;
        uint64_t ada_share, bob_share, ada_units, ada_window_ms;
    } steps[] = {
        {"accounts.ada.governor.share: 50%\n", "ada governor.share;", 500, 1000, 6000, 60000},
        {"governor.share: 90%\naccounts.ada.governor.share: 50%\n", "all governor.share;", 500, 900,
         6000, 60000},
        {"governor.share: 80%\naccounts.bob.governor.share: 40%\n",
         "all governor.share;bob governor.share;ada governor.share;", 800, 400, 6000, 60000},
        {"governor.share: 80%\naccounts.bob.governor.share: 40%\n", "", 800, 400, 6000, 60000},
        {"accounts.ada.governor.gmail: {window_units: 15000, window: 30s}\n",
         "all governor.share;ada governor.gmail.window later;ada governor.gmail.window_units;"
         "bob governor.share;",
         1000, 1000, 15000, 60000},
        /* A window that goes away waits for the next start, and the old value counts. */
        {"accounts.ada.governor.gmail.window_units: 0\n", "ada governor.gmail.window_units later;",
         1000, 1000, 15000, 60000},
        {"governor.gmail.window_units: 7000\n",
         "all governor.gmail.window_units;ada governor.gmail.window_units;", 1000, 1000, 7000,
         60000},
        {"governor.gmail.window_units: 8000\naccounts.ada.governor.gmail.window_units: 0\n",
         "all governor.gmail.window_units;ada governor.gmail.window_units later;", 1000, 1000, 8000,
         60000},
    };
    tide_error err = {0};
    tide_world *world = NULL;
    tide_settings *settings = NULL, *fresh = NULL;
    bool changed[TIDE_SETTINGS_COUNT], restart[TIDE_SETTINGS_COUNT];
    char dir[] = "/tmp/tide-settings-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/config.yaml", dir);
    struct tide_settings_sources sources = {.file = path};
    OK(tide_world_real_new(tide_mem_heap(), &world, &err));
    OK(tide_settings_load(world, &sources, tide_mem_heap(), &settings, &err));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct news news = {""};
        write_file(world, path, steps[i].yaml);
        OK(tide_settings_again(settings, world, &fresh, &err));
        OK(tide_settings_take(settings, fresh, changed, restart, &err));
        tide_settings_changes(fresh, take_news, &news);
        tide_settings_free(fresh);
        const tide_settings *ada = tide_settings_of(settings, "ada");
        if (strcmp(news.text, steps[i].news) != 0)
            fail_msg("step %zu: %s", i, news.text);
        assert_int_equal(share_of(settings, "ada"), steps[i].ada_share);
        assert_int_equal(share_of(settings, "bob"), steps[i].bob_share);
        assert_int_equal(tide_setting_u64(ada, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS),
                         steps[i].ada_units);
        assert_int_equal(tide_setting_u64(ada, TIDE_SET_GOVERNOR_GMAIL_WINDOW),
                         steps[i].ada_window_ms);
    }
    /* What agrees alone and not with what stays is refused as a whole. */
    write_file(world, path, "governor.share: 70%\naccounts.ada.breaker.pause_first: 10m\n");
    assert_int_equal(reload(settings, world, changed, restart, &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "config.yaml:2"));
    assert_int_equal(share_of(settings, "ada"), 1000);
    tide_settings_free(settings);
    tide_world_real_free(world);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

TEST(settings_survive_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        tide_settings *settings = NULL;
        tide_error err = {0};
        tide_status rc = tide_settings_new(&mem.base, &settings);
        if (rc == TIDE_OK)
            rc = yaml_of(settings, "workers.count: 8\naccounts.ada.governor.share: 50%\n", &err);
        tide_settings_free(settings);
        assert_swept(mem, rc);
        if (!mem.fired)
            assert_true(mem.fail_at >= 2);
    }
}
