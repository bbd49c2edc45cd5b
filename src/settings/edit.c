/* edit.c - gives a setting another value in the text of a YAML file, or removes it (settings.h). */
#include "settings/inside.h"

#include "base/check.h"
#include "settings/yaml.h"

struct edit_search {
    tide_text name;
    struct tide_yaml_entry found; /* the last; its texts are gone after the walk */
    bool is_found;
};

/* Whether two names set the same: a file may have the former name of a setting. */
static bool same_target(tide_text a, tide_text b)
{
    tide_setting of_a = TIDE_SETTINGS_COUNT, of_b = TIDE_SETTINGS_COUNT;
    tide_text account_a = TIDE_TEXT_NONE, account_b = TIDE_TEXT_NONE;
    const bool known_a = tide_setting_find(a, &of_a) || tide_setting_find_own(a, &account_a, &of_a);
    const bool known_b = tide_setting_find(b, &of_b) || tide_setting_find_own(b, &account_b, &of_b);
    return known_a && known_b && of_a == of_b && tide_text_equal(account_a, account_b);
}

static tide_status edit_find(void *arg, const struct tide_yaml_entry *entry, tide_error *err)
{
    struct edit_search *search = arg;
    (void)err;
    if (same_target(entry->name, search->name)) {
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
                               const char *verb, tide_text edited, tide_error *err)
{
    tide_settings *after = NULL;
    tide_status rc = tide_settings_new(wanted->mem, &after);
    if (rc == TIDE_OK)
        rc = tide_settings_add_yaml(after, path, edited, err);
    if (rc == TIDE_OK)
        rc = tide_settings_check(after, err);
    if (rc == TIDE_OK && !same(wanted, after))
        rc = tide_error_set(err, TIDE_INVALID, "%s cannot be edited safely; %s %.*s there by hand",
                            path, verb, (int)name.bytes, name.data);
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
        rc = edit_verify(path, wanted, name, "set", tide_buf_text(edited), err);
    tide_settings_free(wanted);
    return rc;
}

/* ---- removing -------------------------------------------------------------------- */

/* A line of the text: its bytes without the end of the line. */
struct line {
    size_t start, end, next;
};

static struct line line_at(tide_text text, size_t at)
{
    struct line line = {.start = at, .end = at};
    while (line.start > 0 && text.data[line.start - 1] != '\n')
        line.start--;
    while (line.end < text.bytes && text.data[line.end] != '\n')
        line.end++;
    line.next = line.end < text.bytes ? line.end + 1 : line.end;
    return line;
}

static size_t indent_of(tide_text text, const struct line *line)
{
    size_t at = line->start;
    while (at < line->end && text.data[at] == ' ')
        at++;
    return at - line->start;
}

/* Only blanks, or a comment. */
static bool says_nothing(tide_text text, const struct line *line)
{
    size_t at = line->start;
    while (at < line->end &&
           (text.data[at] == ' ' || text.data[at] == '\t' || text.data[at] == '\r'))
        at++;
    return at == line->end || text.data[at] == '#';
}

/* The nearest line before or after `from` that says something; false: none. */
static bool line_before(tide_text text, const struct line *from, struct line *out)
{
    for (size_t at = from->start; at > 0; at = out->start) {
        *out = line_at(text, at - 1);
        if (!says_nothing(text, out))
            return true;
    }
    return false;
}

static bool line_after(tide_text text, const struct line *from, struct line *out)
{
    for (size_t at = from->next; at < text.bytes; at = out->next) {
        *out = line_at(text, at);
        if (!says_nothing(text, out))
            return true;
    }
    return false;
}

/* Whether the mapping that `line` is in would be empty without it; then *head_out is the line with
 * its name. */
static bool is_only_child(tide_text text, const struct line *line, struct line *head_out)
{
    struct line after;
    if (!line_before(text, line, head_out) || indent_of(text, head_out) >= indent_of(text, line))
        return false;
    return !line_after(text, line, &after) || indent_of(text, &after) <= indent_of(text, head_out);
}

static void cut_line(tide_buf *text, const struct line *line)
{
    TIDE_ASSERT(line->start <= line->next && line->next <= text->bytes);
    memmove(text->data + line->start, text->data + line->next, text->bytes - line->next);
    text->bytes -= line->next - line->start;
    text->data[text->bytes] = '\0';
}

/* The line of the value, and the names above it that nothing is left under: a name without a value
 * is refused. */
static void cut_entry(tide_buf *text, size_t at)
{
    struct line head, line = line_at(tide_buf_text(text), at);
    bool emptied = true;
    while (emptied) {
        emptied = is_only_child(tide_buf_text(text), &line, &head);
        cut_line(text, &line);
        line = head;
    }
}

struct unset_load {
    tide_settings *settings;
    const char *path;
    tide_text name; /* of what is left out */
};

static tide_status unset_take(void *arg, const struct tide_yaml_entry *entry, tide_error *err)
{
    const struct unset_load *load = arg;
    const struct tide_setting_place place = {TIDE_ORIGIN_FILE, load->path, entry->line, NULL};
    if (same_target(entry->name, load->name))
        return TIDE_OK;
    return tide_setting_set(load->settings, entry->name, entry->value, &place, err);
}

/* Cuts every entry that sets `name`; `edited` has the text. */
static tide_status unset_cut(const char *path, tide_text name, tide_buf *edited, bool *found_out,
                             tide_error *err)
{
    for (;;) { /* ends: each turn cuts a line */
        struct edit_search search = {.name = name};
        TIDE_TRY(tide_yaml_walk(path, tide_buf_text(edited), edit_find, &search, err));
        if (!search.is_found)
            return TIDE_OK;
        *found_out = true;
        if (!search.found.editable)
            return tide_error_set(err, TIDE_INVALID,
                                  "%s:%u: the value spans lines; remove it there by hand", path,
                                  search.found.line);
        cut_entry(edited, search.found.start);
    }
}

tide_status tide_settings_unset_yaml(const char *path, tide_text yaml, tide_text name,
                                     tide_mem *mem, tide_buf *edited, bool *found_out,
                                     tide_error *err)
{
    tide_settings *wanted = NULL;
    bool found = false;
    tide_buf_clear(edited);
    tide_status rc = tide_settings_new(mem, &wanted);
    if (rc == TIDE_OK && yaml.bytes > 0)
        rc = tide_buf_add(edited, yaml.data, yaml.bytes);
    if (rc != TIDE_OK) {
        tide_settings_free(wanted);
        return tide_error_set(err, rc, "out of memory while editing %s", path);
    }
    struct unset_load load = {wanted, path, name};
    rc = tide_yaml_walk(path, yaml, unset_take, &load, err);
    if (rc == TIDE_OK)
        rc = unset_cut(path, name, edited, &found, err);
    if (rc == TIDE_OK)
        rc = edit_verify(path, wanted, name, "remove", tide_buf_text(edited), err);
    tide_settings_free(wanted);
    if (rc == TIDE_OK)
        *found_out = found;
    return rc;
}
