/* edit.c - gives a setting another value in the text of a YAML file (settings.h). */
#include "settings/inside.h"

#include "base/check.h"
#include "settings/yaml.h"

struct edit_search {
    tide_text name;
    struct tide_yaml_entry found; /* its texts are gone after the walk */
    bool is_found;
};

static tide_status edit_find(void *arg, const struct tide_yaml_entry *entry, tide_error *err)
{
    struct edit_search *search = arg;
    (void)err;
    if (tide_text_equal(entry->name, search->name)) {
        search->found = *entry;
        search->is_found = true;
    }
    return TIDE_OK;
}

/* In single quotes only the quote itself is special. */
static tide_status add_yaml_quoted(tide_buf *out, tide_text text)
{
    TIDE_TRY(tide_buf_add_text(out, "'"));
    for (size_t i = 0; i < text.bytes; i++)
        TIDE_TRY(text.data[i] == '\'' ? tide_buf_add_text(out, "''")
                                      : tide_buf_add(out, &text.data[i], 1));
    return tide_buf_add_text(out, "'");
}

/* Numbers, booleans and choices need no quotes. */
static tide_status add_yaml_value(tide_buf *out, const struct tide_setting_info *info,
                                  tide_text value)
{
    if (info->text == NULL || info->choices != NULL)
        return tide_buf_add(out, value.data, value.bytes);
    return add_yaml_quoted(out, value);
}

/* Names of accounts may have characters that need quotes. */
static tide_status add_yaml_name(tide_buf *out, tide_text name)
{
    bool plain = true;
    for (size_t i = 0; i < name.bytes; i++) {
        const char c = name.data[i];
        plain = plain && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || strchr("._-@+", c) != NULL);
    }
    return plain ? tide_buf_add(out, name.data, name.bytes) : add_yaml_quoted(out, name);
}

static tide_status edit_write(tide_text yaml, const struct edit_search *search, tide_text value,
                              const struct tide_setting_info *info, tide_buf *edited)
{
    tide_buf_clear(edited);
    size_t head = search->is_found ? search->found.start : yaml.bytes;
    size_t tail = search->is_found ? search->found.end : yaml.bytes;
    TIDE_ASSERT(head <= tail && tail <= yaml.bytes);
    TIDE_TRY(head == 0 ? TIDE_OK : tide_buf_add(edited, yaml.data, head));
    if (!search->is_found) {
        if (yaml.bytes > 0 && yaml.data[yaml.bytes - 1] != '\n')
            TIDE_TRY(tide_buf_add_text(edited, "\n"));
        TIDE_TRY(add_yaml_name(edited, search->name));
        TIDE_TRY(tide_buf_add_text(edited, ": "));
    }
    TIDE_TRY(add_yaml_value(edited, info, value));
    if (search->is_found && tail < yaml.bytes)
        TIDE_TRY(tide_buf_add(edited, yaml.data + tail, yaml.bytes - tail));
    if (!search->is_found)
        TIDE_TRY(tide_buf_add_text(edited, "\n"));
    return TIDE_OK;
}

/* A value that equals its default would look right even if the file lost it: compare where values
 * come from, too. */
static bool values_same(const tide_settings *a, const tide_settings *b)
{
    bool same = true;
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        same = same && tide_setting_value_equal((tide_setting)i, &a->values[i], &b->values[i]) &&
               a->values[i].layer == b->values[i].layer && a->values[i].own == b->values[i].own;
    return same;
}

static bool same(const tide_settings *a, const tide_settings *b)
{
    bool same = a->accounts_count == b->accounts_count && values_same(a, b);
    for (size_t i = 0; same && i < a->accounts_count; i++) {
        const tide_settings *other = tide_settings_of(b, a->accounts[i]->account);
        same = other != b && values_same(a->accounts[i], other);
    }
    return same;
}

/* The edited text must mean what `wanted` has. */
static tide_status edit_verify(const char *path, const tide_settings *wanted, tide_text name,
                               tide_text edited, tide_error *err)
{
    tide_settings *after = NULL;
    tide_status rc = tide_settings_new(wanted->mem, &after);
    if (rc == TIDE_OK)
        rc = tide_settings_add_yaml(after, path, edited, err);
    if (rc == TIDE_OK)
        rc = tide_settings_check(after, err);
    if (rc == TIDE_OK && !same(wanted, after))
        rc = tide_error_set(err, TIDE_INVALID, "%s cannot be edited safely; set %.*s there by hand",
                            path, (int)name.bytes, name.data);
    tide_settings_free(after);
    return rc;
}

/* Whether it is a setting and a value at all, whatever the file has. */
static tide_status edit_possible(tide_text name, tide_text value, tide_mem *mem,
                                 tide_setting *setting_out, tide_error *err)
{
    const struct tide_setting_place place = {TIDE_ORIGIN_FLAG, NULL, 0, NULL};
    tide_text account = TIDE_TEXT_NONE;
    tide_settings *scratch = NULL;
    tide_status rc = tide_settings_new(mem, &scratch);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "out of memory while reading settings");
    rc = tide_setting_set(scratch, name, value, &place, err);
    tide_settings_free(scratch);
    const bool known =
        tide_setting_find(name, setting_out) || tide_setting_find_own(name, &account, setting_out);
    TIDE_ASSERT(known || rc != TIDE_OK);
    return rc;
}

tide_status tide_settings_edit_yaml(const char *path, tide_text yaml, tide_text name,
                                    tide_text value, tide_mem *mem, tide_buf *edited,
                                    tide_error *err)
{
    tide_settings *wanted = NULL;
    tide_setting setting = TIDE_SETTINGS_COUNT;
    struct edit_search search = {.name = name};
    const struct tide_setting_place place = {TIDE_ORIGIN_FILE, path, 1, NULL};
    TIDE_TRY(edit_possible(name, value, mem, &setting, err));
    tide_status rc = tide_settings_new(mem, &wanted);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "out of memory while editing %s", path);
    rc = tide_settings_add_yaml(wanted, path, yaml, err);
    if (rc == TIDE_OK)
        rc = tide_setting_set(wanted, name, value, &place, err);
    if (rc == TIDE_OK)
        rc = tide_yaml_walk(path, yaml, edit_find, &search, err);
    if (rc == TIDE_OK && search.is_found && !search.found.editable)
        rc = tide_error_set(err, TIDE_INVALID,
                            "%s:%u: the value spans lines; change it there by hand", path,
                            search.found.line);
    if (rc == TIDE_OK) {
        rc = edit_write(yaml, &search, value, tide_setting_info(setting), edited);
        if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "the edited %s would be too large", path);
    }
    if (rc == TIDE_OK)
        rc = edit_verify(path, wanted, name, tide_buf_text(edited), err);
    tide_settings_free(wanted);
    return rc;
}

tide_status tide_settings_edit_file(tide_world *world, const char *path, tide_text name,
                                    tide_text value, tide_mem *mem, tide_error *err)
{
    tide_buf content, edited;
    tide_buf_init(&content, mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_buf_init(&edited, mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_status rc = tide_file_read(world, path, TIDE_SETTINGS_FILE_BYTES_MAX, &content, err);
    if (rc == TIDE_NOT_FOUND)
        rc = TIDE_OK;
    if (rc == TIDE_OK)
        rc = tide_settings_edit_yaml(path, tide_buf_text(&content), name, value, mem, &edited, err);
    if (rc == TIDE_OK)
        rc = tide_file_replace(world, path, tide_buf_text(&edited), 0600, err);
    tide_buf_done(&content);
    tide_buf_done(&edited);
    return rc;
}
