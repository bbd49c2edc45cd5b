/* people.c - the sections triage, styles and contacts: who is automated, and who is written to in
 * which style. */
#include "assistant/config/inside.h"

enum { ADDRESS_BYTES_MAX = 320 };

/* ---- triage ---------------------------------------------------------------------- */

/* J10: senders that do not read replies. */
static const tide_text automated_by_default[] = {
    {"noreply", 7},        {"no-reply", 8},      {"donotreply", 10}, {"do-not-reply", 12},
    {"mailer-daemon", 13}, {"postmaster", 10},   {"bounce", 6},      {"bounces", 7},
    {"notification", 12},  {"notifications", 13}};

tide_status tide_config_triage(struct tide_config_reader *reader, const struct tide_node *node)
{
    static const char *const known[] = {"blacklist", "automated_senders", NULL};
    struct tide_assistant_config *config = reader->config;
    config->automated_senders = (struct tide_texts){
        automated_by_default, sizeof automated_by_default / sizeof automated_by_default[0]};
    if (node == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_config_map(reader, node, known));
    const struct tide_node *blacklist = tide_node_get(node, "blacklist");
    const struct tide_node *automated = tide_node_get(node, "automated_senders");
    if (blacklist != NULL)
        TIDE_TRY(tide_config_texts(reader, blacklist, TIDE_ASSISTANT_GLOBS_MAX, ADDRESS_BYTES_MAX,
                                   &config->blacklist));
    if (automated != NULL)
        TIDE_TRY(tide_config_texts(reader, automated, TIDE_ASSISTANT_GLOBS_MAX, ADDRESS_BYTES_MAX,
                                   &config->automated_senders));
    return TIDE_OK;
}

/* ---- styles ---------------------------------------------------------------------- */

static const struct tide_style business = {
    {"business", 8},
    TIDE_TEXT("Polite, clear and concise. Whole sentences, no slang, no emoji. Address the writer "
              "the way they address us. Answer every question that was asked; where a fact is "
              "missing, leave a gap in [brackets] for the user to fill.")};

static const char *style_named(const void *arg, size_t index)
{
    return ((const struct tide_style *)arg)[index].name.data; /* terminated: from the arena */
}

static tide_status find_style(const struct tide_config_reader *reader, const struct tide_node *node,
                              size_t *style_out)
{
    const struct tide_assistant_config *config = reader->config;
    tide_text name = TIDE_TEXT_NONE;
    TIDE_TRY(tide_config_line(reader, node, TIDE_ASSISTANT_NAME_BYTES_MAX, &name));
    for (size_t i = 0; i < config->styles_count; i++) {
        if (tide_text_equal(config->styles[i].name, name)) {
            *style_out = i;
            return TIDE_OK;
        }
    }
    return tide_config_unknown(
        reader, node, "style", name,
        tide_config_nearest(name, style_named, config->styles, config->styles_count));
}

static tide_status read_styles(struct tide_config_reader *reader, const struct tide_node *node,
                               struct tide_style *styles, size_t *count_io)
{
    for (const struct tide_node *one = node->first; one != NULL; one = one->next) {
        struct tide_style *style = &styles[(*count_io)++];
        TIDE_TRY(tide_config_name(reader, one, one->key));
        style->name = one->key;
        TIDE_TRY(tide_config_prompt(reader, one, &style->text));
    }
    return TIDE_OK;
}

/* J10 ends at `business`, so there always is one. */
tide_status tide_config_styles(struct tide_config_reader *reader, const struct tide_node *root)
{
    struct tide_assistant_config *config = reader->config;
    const struct tide_node *node = tide_config_section(root, "styles");
    if (node != NULL && node->kind != TIDE_NODE_MAP)
        return tide_config_refuse(reader, node, "expected names and values");
    const size_t given = node == NULL ? 0 : node->count;
    if (given > TIDE_ASSISTANT_STYLES_MAX)
        return tide_config_refuse(reader, node, "has more than %d styles",
                                  TIDE_ASSISTANT_STYLES_MAX);
    struct tide_style *styles = tide_arena_take(reader->arena, (given + 1) * sizeof *styles);
    if (styles == NULL)
        return tide_config_no_memory(reader);
    size_t count = 0;
    if (node != NULL)
        TIDE_TRY(read_styles(reader, node, styles, &count));
    if (tide_node_get(node, "business") == NULL)
        styles[count++] = business;
    config->styles = styles;
    config->styles_count = count;
    const struct tide_node *wanted =
        tide_node_get(tide_config_section(root, "drafts"), "default_style");
    if (wanted != NULL)
        return find_style(reader, wanted, &config->default_style);
    for (size_t i = 0; i < count; i++)
        if (tide_text_equal(styles[i].name, business.name))
            config->default_style = i;
    return TIDE_OK;
}

/* ---- contacts -------------------------------------------------------------------- */

static tide_status read_contacts(struct tide_config_reader *reader, const struct tide_node *node,
                                 bool addresses, const struct tide_contact **contacts_out,
                                 size_t *count_out)
{
    if (node == NULL)
        return TIDE_OK;
    if (node->kind != TIDE_NODE_MAP)
        return tide_config_refuse(reader, node, "expected names and values");
    if (node->count > TIDE_ASSISTANT_CONTACTS_MAX)
        return tide_config_refuse(reader, node, "has more than %d entries",
                                  TIDE_ASSISTANT_CONTACTS_MAX);
    struct tide_contact *contacts =
        tide_arena_take(reader->arena, node->count * sizeof *contacts + 1);
    if (contacts == NULL)
        return tide_config_no_memory(reader);
    size_t count = 0;
    for (const struct tide_node *one = node->first; one != NULL; one = one->next) {
        struct tide_contact *contact = &contacts[count++];
        const bool has_at = memchr(one->key.data, '@', one->key.bytes) != NULL;
        if (one->key.bytes > ADDRESS_BYTES_MAX || has_at != addresses)
            return tide_config_refuse(reader, one, "is not %s",
                                      addresses ? "an address" : "a domain: *.example.com");
        contact->who = one->key;
        TIDE_TRY(find_style(reader, one, &contact->style));
    }
    *contacts_out = contacts;
    *count_out = count;
    return TIDE_OK;
}

tide_status tide_config_contacts(struct tide_config_reader *reader, const struct tide_node *node)
{
    static const char *const known[] = {"senders", "domains", NULL};
    struct tide_assistant_config *config = reader->config;
    if (node == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_config_map(reader, node, known));
    TIDE_TRY(read_contacts(reader, tide_node_get(node, "senders"), true, &config->senders,
                           &config->senders_count));
    return read_contacts(reader, tide_node_get(node, "domains"), false, &config->domains,
                         &config->domains_count);
}
