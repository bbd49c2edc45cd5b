/* own.c - settings of one account alone (E11.2).
 *
 * An account with values of its own has a tide_settings like the common one, in which every other
 * value is the common one: whoever reads settings needs not know whose they are. */
#include "settings/inside.h"

#include "base/check.h"

#include <stdio.h>

static const char prefix[] = "accounts.";
enum { PREFIX_BYTES = sizeof prefix - 1 };

/* ---- names ----------------------------------------------------------------------- */

bool tide_setting_find_own(tide_text name, tide_text *account_out, tide_setting *setting_out)
{
    if (name.bytes < PREFIX_BYTES || memcmp(name.data, prefix, PREFIX_BYTES) != 0)
        return false;
    const tide_text rest = {name.data + PREFIX_BYTES, name.bytes - PREFIX_BYTES};
    for (size_t i = 1; i + 1 < rest.bytes; i++) {
        const tide_text key = {rest.data + i + 1, rest.bytes - i - 1};
        if (rest.data[i] != '.' || !tide_setting_find(key, setting_out))
            continue;
        *account_out = (tide_text){rest.data, i};
        return true;
    }
    return false;
}

void tide_setting_name(const tide_settings *settings, tide_setting setting,
                       char name_out[TIDE_SETTING_NAME_BYTES])
{
    const char *name = tide_setting_info(setting)->name;
    const int bytes = tide_setting_is_own(settings, setting)
                          ? snprintf(name_out, TIDE_SETTING_NAME_BYTES, "%s%s.%s", prefix,
                                     settings->account, name)
                          : snprintf(name_out, TIDE_SETTING_NAME_BYTES, "%s", name);
    TIDE_ASSERT(bytes > 0 && bytes < TIDE_SETTING_NAME_BYTES);
}

/* ---- reading --------------------------------------------------------------------- */

static tide_settings *find(const tide_settings *settings, tide_text account)
{
    for (size_t i = 0; i < settings->accounts_count; i++)
        if (tide_text_equal(tide_text_of(settings->accounts[i]->account), account))
            return settings->accounts[i];
    return NULL;
}

const tide_settings *tide_settings_of(const tide_settings *settings, const char *account)
{
    const tide_settings *own = find(settings, tide_text_of(account));
    return own != NULL ? own : settings;
}

bool tide_setting_is_own(const tide_settings *settings, tide_setting setting)
{
    TIDE_ASSERT(setting < TIDE_SETTINGS_COUNT);
    return settings->values[setting].own;
}

static size_t count_own(const tide_settings *own)
{
    size_t count = 0;
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        count += own->values[i].own;
    return count;
}

const char *tide_settings_account(const tide_settings *settings, size_t *cursor_io)
{
    while (*cursor_io < settings->accounts_count) {
        const tide_settings *own = settings->accounts[(*cursor_io)++];
        if (count_own(own) > 0)
            return own->account;
    }
    return NULL;
}

static void differ(const tide_settings *before, const tide_settings *after,
                   tide_settings_differ *visit, void *arg)
{
    const bool common = before->common == NULL && after->common == NULL;
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        const struct tide_setting_value *a = &before->values[i], *b = &after->values[i];
        if ((common || a->own || b->own) &&
            (a->own != b->own || !tide_setting_value_equal((tide_setting)i, a, b)))
            visit(arg, before, after, (tide_setting)i);
    }
}

void tide_settings_differences(const tide_settings *before, const tide_settings *after,
                               tide_settings_differ *visit, void *arg)
{
    differ(before, after, visit, arg);
    for (size_t i = 0; i < before->accounts_count; i++)
        differ(before->accounts[i], tide_settings_of(after, before->accounts[i]->account), visit,
               arg);
    for (size_t i = 0; i < after->accounts_count; i++)
        if (find(before, tide_text_of(after->accounts[i]->account)) == NULL)
            differ(before, after->accounts[i], visit, arg);
}

/* ---- changing -------------------------------------------------------------------- */

static void inherit(tide_settings *own, tide_setting setting)
{
    if (own->values[setting].own)
        return;
    own->values[setting] = own->common->values[setting];
}

void tide_settings_follow(tide_settings *settings, tide_setting setting)
{
    for (size_t i = 0; i < settings->accounts_count; i++)
        inherit(settings->accounts[i], setting);
}

tide_status tide_settings_own(tide_settings *settings, tide_text account, tide_settings **own_out,
                              tide_error *err)
{
    TIDE_ASSERT(settings->common == NULL);
    tide_settings *own = find(settings, account);
    if (own != NULL) {
        *own_out = own;
        return TIDE_OK;
    }
    if (account.bytes > TIDE_NAME_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "an account's name has at most %d bytes",
                              TIDE_NAME_BYTES_MAX);
    if (settings->accounts_count == TIDE_SETTINGS_ACCOUNTS_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d accounts have settings of their own",
                              TIDE_SETTINGS_ACCOUNTS_MAX);
    if (!TIDE_GROW_IN(settings->mem, settings->accounts, settings->accounts_capacity,
                      settings->accounts_count + 1, TIDE_SETTINGS_ACCOUNTS_MAX) ||
        tide_settings_new(settings->mem, &own) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading settings");
    own->common = settings;
    memcpy(own->account, account.data, account.bytes);
    memcpy(own->values, settings->values, sizeof own->values);
    settings->accounts[settings->accounts_count++] = own;
    *own_out = own;
    return TIDE_OK;
}

tide_status tide_settings_copy(const tide_settings *settings, tide_settings **copy_out)
{
    tide_settings *copy = NULL;
    tide_settings *own = NULL;
    TIDE_TRY(tide_settings_new(settings->mem, &copy));
    memcpy(copy->values, settings->values, sizeof copy->values);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < settings->accounts_count; i++) {
        const tide_settings *from = settings->accounts[i];
        rc = tide_settings_own(copy, tide_text_of(from->account), &own, NULL);
        if (rc == TIDE_OK)
            memcpy(own->values, from->values, sizeof own->values);
    }
    if (rc != TIDE_OK) {
        tide_settings_free(copy);
        return rc;
    }
    *copy_out = copy;
    return TIDE_OK;
}

void tide_settings_swap(tide_settings *a, tide_settings *b)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        const struct tide_setting_value value = a->values[i];
        a->values[i] = b->values[i];
        b->values[i] = value;
    }
    tide_settings **accounts = a->accounts;
    const size_t count = a->accounts_count, capacity = a->accounts_capacity;
    a->accounts = b->accounts;
    a->accounts_count = b->accounts_count;
    a->accounts_capacity = b->accounts_capacity;
    b->accounts = accounts;
    b->accounts_count = count;
    b->accounts_capacity = capacity;
    for (size_t i = 0; i < a->accounts_count; i++)
        a->accounts[i]->common = a;
    for (size_t i = 0; i < b->accounts_count; i++)
        b->accounts[i]->common = b;
}

static tide_status align(tide_settings *from, tide_settings *to, tide_error *err)
{
    tide_settings *own = NULL;
    for (size_t i = 0; i < from->accounts_count; i++)
        TIDE_TRY(tide_settings_own(to, tide_text_of(from->accounts[i]->account), &own, err));
    return TIDE_OK;
}

tide_status tide_settings_align(tide_settings *a, tide_settings *b, tide_error *err)
{
    TIDE_TRY(align(a, b, err));
    return align(b, a, err);
}

void tide_settings_accounts_free(tide_settings *settings)
{
    for (size_t i = 0; i < settings->accounts_count; i++)
        tide_settings_free(settings->accounts[i]);
    tide_mem_free(settings->mem, settings->accounts,
                  settings->accounts_capacity * sizeof *settings->accounts);
}
