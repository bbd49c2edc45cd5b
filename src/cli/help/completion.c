/* completion.c - `tidemark completion`: the scripts of three shells, and the answers they ask for.
 *
 * The scripts only pass on the words of the line (--line); this program answers what may complete the
 * last of them, from its tables and, for accounts, labels and the like, from the home.  So all shells
 * offer the same, and a new command or setting needs no new script.
 *
 * An answer is a line for each word, with a description behind a tab, or ":files" where the shell
 * itself knows better.  It reads only, and fast: a shared ledger is not asked, since a server that does
 * not answer would block the user's terminal. */
#include "cli/account_seen.h"
#include "cli/archive_here.h"
#include "cli/cli.h"

#include "base/hash.h"
#include "base/map.h"

#include <stdio.h>
#include <string.h>

struct line {
    struct cli *cli;
    const char *const *words; /* of the line, without the program */
    unsigned count;           /* of those before `current` */
    const char *current;      /* what is typed of the last one */
    const char *prefix;       /* put before each answer: "--account=" */
    const char *group;        /* NULL: none yet */
    const struct cli_command *command;
    const struct cli_flag *flag; /* whose value is wanted; NULL: none */
    const char *first;           /* argument; NULL: none */
    unsigned arguments;          /* of the command, before `current` */
    bool flags_end;              /* behind "--" */
};

/* ---- answers ----------------------------------------------------------------------------- */

static bool is_plain(tide_text word)
{
    for (size_t i = 0; i < word.bytes; i++)
        if ((unsigned char)word.data[i] < ' ' || word.data[i] == 0x7f)
            return false;
    return word.bytes > 0;
}

static void answer(struct line *line, tide_text word, const char *words)
{
    const size_t typed = strlen(line->current);
    if (!is_plain(word) || word.bytes < typed || memcmp(word.data, line->current, typed) != 0)
        return;
    cli_print(line->cli, "%s%.*s\t%s\n", line->prefix, (int)word.bytes, word.data, words);
}

/* Words separated by spaces. */
static void answer_words(struct line *line, const char *words)
{
    tide_text rest = tide_text_of(words);
    while (rest.bytes > 0) {
        const tide_text word = tide_text_word(&rest);
        if (word.bytes > 0)
            answer(line, word, "");
    }
}

static void answer_files(struct line *line)
{
    cli_print(line->cli, ":files\t\n");
}

/* ---- names of this home -------------------------------------------------------------------- */

/* The home of the line, if it names one. */
static bool home_of(struct line *line)
{
    struct cli *cli = line->cli;
    for (unsigned i = 0; i < line->count && strcmp(line->words[i], "--") != 0; i++) {
        if (strncmp(line->words[i], "--ledger", 8) == 0)
            return false;
        if (strncmp(line->words[i], "--home=", 7) == 0)
            cli->home = line->words[i] + 7;
        else if (strcmp(line->words[i], "--home") == 0 && i + 1 < line->count)
            cli->home = line->words[i + 1];
    }
    return cli_dirs(cli) == TIDE_OK && cli_ledger_choose(cli) == TIDE_OK && cli->shared == NULL;
}

struct accounts {
    struct line *line;
    const struct tide_system *only; /* accounts of this system; NULL: of any */
    const char *subject;            /* and only those that are one of these: "EMAIL"; NULL: all */
};

static bool answer_account(const struct tide_account_row *row, void *arg)
{
    const struct accounts *accounts = arg;
    const struct tide_system *system =
        tide_system_of_provider(accounts->line->cli->systems, row->provider);
    /* One that was removed keeps its row. */
    if (system != NULL && account_is_kept(row) &&
        (accounts->only == NULL || accounts->only == system) &&
        (accounts->subject == NULL || strcmp(system->subject, accounts->subject) == 0))
        answer(accounts->line, tide_text_of(row->name), system->name);
    return true;
}

static void answer_accounts(struct line *line, const char *subject)
{
    struct accounts accounts = {line, NULL, subject};
    /* What a system calls so is one of its own accounts, if it has such. */
    const struct tide_system *system =
        line->group == NULL ? NULL
                            : tide_system_named(line->cli->systems, tide_text_of(line->group));
    if (subject != NULL && system != NULL && strcmp(system->subject, subject) == 0)
        accounts.only = system;
    if (home_of(line) && cli_ledger_read(line->cli) == TIDE_OK)
        (void)tide_ledger_accounts(line->cli->ledger, answer_account, &accounts, NULL);
}

struct names {
    struct line *line;
    tide_map
        said; /* hashes: a name that has that of another one is not offered, which harms nothing */
};

static void answer_name(tide_text name, void *arg)
{
    struct names *names = arg;
    uint32_t ignored = 0;
    const uint64_t hash = tide_hash_key(name);
    if (tide_map_get(&names->said, hash, &ignored))
        return;
    (void)tide_map_put(&names->said, hash, 1);
    answer(names->line, name, "");
}

/* What systems know: labels. */
static void answer_names(struct line *line, const char *kind)
{
    struct cli *cli = line->cli;
    char archive_dir[CLI_PATH_BYTES], secrets_dir[CLI_PATH_BYTES];
    if (!home_of(line) || archive_here_places(cli, archive_dir, secrets_dir) != TIDE_OK)
        return;
    const struct tide_system_home home = {.world = cli->world,
                                          .mem = cli->mem,
                                          .settings = cli->settings,
                                          .archive_dir = archive_dir,
                                          .config_path = cli->config_path};
    struct names names = {.line = line};
    tide_map_init(&names.said, cli->mem);
    for (size_t i = 0; cli->systems[i] != NULL; i++)
        if (cli->systems[i]->names != NULL)
            cli->systems[i]->names(&home, kind, answer_name, &names);
    tide_map_done(&names.said);
}

/* ---- names of the program -------------------------------------------------------------------- */

/* `behind`: "=" where a value follows in the same word. */
static void answer_settings(struct line *line, const char *behind)
{
    char name[TIDE_SETTING_TEXT_BYTES];
    const bool own = cli_flag_find(line->command == NULL ? NULL : line->command->flags,
                                   TIDE_TEXT("account")) != NULL;
    bool one = false; /* account */
    for (unsigned i = 0; own && i < line->count; i++)
        one = one || strncmp(line->words[i], "--account", 9) == 0;
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        const struct tide_setting_info *info = tide_setting_info((tide_setting)i);
        (void)snprintf(name, sizeof name, "%s%s", info->name, behind);
        if (!one || info->own)
            answer(line, tide_text_of(name), info->meaning);
    }
}

/* Of the setting that is the first argument: what it may be, if that is a choice. */
static void answer_value(struct line *line)
{
    tide_setting setting = TIDE_SETTINGS_COUNT;
    tide_text account = TIDE_TEXT_NONE;
    if (line->first == NULL ||
        (!tide_setting_find(tide_text_of(line->first), &setting) &&
         !tide_setting_find_own(tide_text_of(line->first), &account, &setting)))
        return;
    const struct tide_setting_info *info = tide_setting_info(setting);
    if (info->type == TIDE_TYPE_BOOL)
        answer_words(line, "true false");
    tide_text rest = tide_text_of(info->choices == NULL ? "" : info->choices);
    while (rest.bytes > 0) {
        const char *end = memchr(rest.data, '|', rest.bytes);
        const size_t bytes = end == NULL ? rest.bytes : (size_t)(end - rest.data);
        answer(line, (tide_text){rest.data, bytes}, "");
        rest.data += end == NULL ? bytes : bytes + 1;
        rest.bytes -= end == NULL ? bytes : bytes + 1;
    }
}

static void answer_systems(struct line *line)
{
    char all[TIDE_SYSTEMS_MAX * 40] = "";
    for (size_t i = 0; line->cli->systems[i] != NULL; i++) {
        const char *name = line->cli->systems[i]->name;
        const size_t used = strlen(all);
        (void)snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : ",", name);
        answer(line, tide_text_of(name), "");
    }
    answer(line, tide_text_of(all), "all of them");
}

/* Of all providers, or of the one that is the first argument; each word once. */
static void answer_purposes(struct line *line)
{
    const struct tide_system *const *systems = line->cli->systems;
    const struct tide_system *only =
        line->first == NULL ? NULL : tide_system_of_provider(systems, line->first);
    for (size_t i = 0; systems[i] != NULL; i++)
        for (size_t k = 0; systems[i]->purposes[k].name != NULL; k++) {
            const struct tide_purpose *purpose = &systems[i]->purposes[k];
            bool said = only != NULL && only != systems[i];
            for (size_t j = 0; j < i && !said && only == NULL; j++)
                for (size_t l = 0; systems[j]->purposes[l].name != NULL; l++)
                    said = said || strcmp(systems[j]->purposes[l].name, purpose->name) == 0;
            if (!said)
                answer(line, tide_text_of(purpose->name), purpose->words);
        }
}

static void answer_providers(struct line *line)
{
    for (size_t i = 0; line->cli->systems[i] != NULL; i++)
        if (line->cli->systems[i]->provider[0] != '\0')
            answer(line, tide_text_of(line->cli->systems[i]->provider),
                   line->cli->systems[i]->name);
}

/* Groups, or the verbs of one, each once: commands of a group stand together. */
static void answer_commands(struct line *line, const char *group)
{
    const char *last = "";
    for (const struct cli_command *const *c = line->cli->commands; *c != NULL; c++) {
        const char *word = group == NULL ? (*c)->group : (*c)->verb;
        if (word == NULL || (group != NULL && strcmp(group, (*c)->group) != 0) ||
            strcmp(word, last) == 0)
            continue;
        answer(line, tide_text_of(word), group == NULL && (*c)->verb != NULL ? "" : (*c)->meaning);
        last = word;
    }
}

static void answer_flags(struct line *line, const struct cli_flag *flags)
{
    char word[80];
    for (; flags != NULL && flags->name != NULL; flags++) {
        (void)snprintf(word, sizeof word, "--%s", flags->name);
        answer(line, tide_text_of(word), flags->meaning);
    }
}

/* ---- what is wanted ---------------------------------------------------------------------------- */

/* The operators, and the names that may follow two of them. */
static void answer_query(struct line *line)
{
    static const struct {
        const char *operator, * kind;
    } named[] = {{"label:", "labels"}, {"saved:", "saved"}};
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strncmp(line->current, named[i].operator, strlen(named[i].operator)) == 0) {
            line->prefix = named[i].operator;
            line->current += strlen(named[i].operator);
            answer_names(line, named[i].kind);
            return;
        }
    answer_names(line, "operators");
}

/* By the name that help shows for it. */
static void answer_kind(struct line *line, tide_text kind)
{
    static const struct {
        const char *kind;
        enum { ACCOUNTS, EMAILS, FILES, PROVIDERS, SETTINGS, VALUES, SETTINGS_SET, QUERIES } what;
    } kinds[] = {{"ACCOUNT", ACCOUNTS},
                 {"EMAIL", EMAILS},
                 {"DIR", FILES},
                 {"FILE", FILES},
                 {"PATH", FILES},
                 {"FILE.db", FILES},
                 {"FILE.mbox", FILES},
                 {"FROM", FILES},
                 {"TO", FILES},
                 {"PROVIDER", PROVIDERS},
                 {"SETTING", SETTINGS},
                 {"VALUE", VALUES},
                 {"NAME=VALUE", SETTINGS_SET},
                 {"QUERY", QUERIES}};
    while (kind.bytes > 0 && strchr(".[]", kind.data[kind.bytes - 1]) != NULL)
        kind.bytes--;
    while (kind.bytes > 0 && kind.data[0] == '[') {
        kind.data++;
        kind.bytes--;
    }
    if (kind.bytes > 0 && kind.data[0] >= 'a' && kind.data[0] <= 'z')
        answer(line, kind, ""); /* a word that is meant as it is */
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!tide_text_equal(kind, tide_text_of(kinds[i].kind)))
            continue;
        switch (kinds[i].what) {
        case ACCOUNTS:
            answer_accounts(line, NULL);
            break;
        case EMAILS:
            answer_accounts(line, "EMAIL");
            break;
        case FILES:
            answer_files(line);
            break;
        case PROVIDERS:
            answer_providers(line);
            break;
        case SETTINGS:
            answer_settings(line, "");
            break;
        case VALUES:
            answer_value(line);
            break;
        case SETTINGS_SET:
            answer_settings(line, "=");
            break;
        case QUERIES:
            answer_query(line);
            break;
        }
    }
}

/* "MODE:inbox trash", ":@labels", "FILE". */
static void answer_flag_value(struct line *line, const struct cli_flag *flag)
{
    const char *words = strchr(flag->argument, ':');
    if (words == NULL)
        answer_kind(line, tide_text_of(flag->argument));
    else if (strcmp(words, ":@systems") == 0)
        answer_systems(line);
    else if (strcmp(words, ":@purposes") == 0)
        answer_purposes(line);
    else if (words[1] == '@')
        answer_names(line, words + 2);
    else
        answer_words(line, words + 1);
}

/* The part of "[list|explain ID] [DRIVE]" for an argument: up to a space outside of brackets.  The
 * last one stands for all that follow. */
static tide_text part_of(const char *arguments, unsigned index)
{
    tide_text part = tide_text_of(arguments);
    for (unsigned i = 0;; i++) {
        size_t bytes = 0;
        int depth = 0;
        while (bytes < part.bytes && (depth > 0 || part.data[bytes] != ' ')) {
            depth += (part.data[bytes] == '[') - (part.data[bytes] == ']');
            bytes++;
        }
        if (i == index || bytes >= part.bytes)
            return (tide_text){part.data, bytes};
        part.data += bytes + 1;
        part.bytes -= bytes + 1;
    }
}

/* Alternatives are separated by '|'; of "explain ID" the first word counts. */
static void answer_argument(struct line *line)
{
    const struct cli_command *command = line->command;
    if (line->arguments >= command->arguments_max)
        return;
    tide_text part = part_of(command->arguments, line->arguments);
    if (part.bytes > 0 && part.data[0] == '[') {
        part.data++;
        part.bytes--;
    }
    while (part.bytes > 0) {
        const char *bar = memchr(part.data, '|', part.bytes);
        const size_t bytes = bar == NULL ? part.bytes : (size_t)(bar - part.data);
        tide_text one = {part.data, bytes};
        answer_kind(line, tide_text_word(&one));
        part.data += bar == NULL ? bytes : bytes + 1;
        part.bytes -= bar == NULL ? bytes : bytes + 1;
    }
}

/* ---- the words before --------------------------------------------------------------------------- */

static const struct cli_command *command_of(const struct line *line, const char *group,
                                            const char *verb)
{
    for (const struct cli_command *const *c = line->cli->commands; *c != NULL; c++)
        if (strcmp((*c)->group, group) == 0 &&
            (verb == NULL ? (*c)->verb == NULL
                          : (*c)->verb != NULL && strcmp((*c)->verb, verb) == 0))
            return *c;
    return NULL;
}

static void word_take(struct line *line, const char *word)
{
    const struct cli_command *verb =
        line->group == NULL ? NULL : command_of(line, line->group, word);
    if (line->group == NULL) {
        line->group = word;
        line->command = command_of(line, word, NULL);
    } else if (verb != NULL && line->arguments == 0 &&
               (line->command == NULL || line->command->verb == NULL)) {
        line->command = verb;
    } else {
        line->first = line->first == NULL ? word : line->first;
        line->arguments++;
    }
}

static const struct cli_flag *flag_of(const struct line *line, const char *word)
{
    const tide_text name = {word + 2, strcspn(word + 2, "=")};
    const struct cli_flag *flag =
        cli_flag_find(line->command == NULL ? NULL : line->command->flags, name);
    return flag != NULL ? flag : cli_flag_find(cli_global_flags, name);
}

static void words_read(struct line *line)
{
    for (unsigned i = 0; i < line->count; i++) {
        const char *word = line->words[i];
        if (line->flags_end || word[0] != '-') {
            word_take(line, word);
        } else if (strcmp(word, "--") == 0) {
            line->flags_end = true;
        } else if (word[1] == '-' && strchr(word, '=') == NULL) {
            const struct cli_flag *flag = flag_of(line, word);
            const bool value = flag != NULL && flag->argument != NULL;
            if (value && i + 1 == line->count)
                line->flag = flag;
            i += value;
        }
    }
}

/* "--account=a": the value in the same word. */
static bool current_is_assignment(struct line *line, char prefix[80])
{
    const char *equals = strchr(line->current, '=');
    if (line->flags_end || strncmp(line->current, "--", 2) != 0 || equals == NULL)
        return false;
    line->flag = flag_of(line, line->current);
    (void)snprintf(prefix, 80, "%.*s", (int)(equals + 1 - line->current), line->current);
    line->prefix = prefix;
    line->current = equals + 1;
    return true;
}

static void answer_line(struct line *line)
{
    char prefix[80];
    words_read(line);
    const bool assignment = line->flag == NULL && current_is_assignment(line, prefix);
    if (line->flag != NULL && line->flag->argument != NULL) {
        answer_flag_value(line, line->flag);
    } else if (assignment) {
        return;
    } else if (!line->flags_end && line->current[0] == '-') {
        answer_flags(line, line->command == NULL ? NULL : line->command->flags);
        answer_flags(line, cli_global_flags);
    } else if (line->group == NULL) {
        answer_commands(line, NULL);
    } else {
        if (line->arguments == 0 && (line->command == NULL || line->command->verb == NULL))
            answer_commands(line, line->group);
        if (line->command != NULL)
            answer_argument(line);
    }
}

/* ---- the scripts ----------------------------------------------------------------------------------- */

/* Bash replaces only what is behind the last of its word breaks, such as '@' and ':'. */
static const char bash[] =
    "# bash completion for tidemark; made by `tidemark completion bash`\n"
    "_tidemark()\n{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} current cut word words=()\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=(\"\")\n"
    "    current=${words[-1]}\n"
    "    cut=${current%\"${current##*[$COMP_WORDBREAKS]}\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r word _; do\n"
    "        if [[ $word == :files ]]; then\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"${current#*=}\")\n"
    "        else\n"
    "            [[ $word == *[=:] ]] && compopt -o nospace 2>/dev/null\n"
    "            printf -v word %q \"${word#\"$cut\"}\"\n"
    "            COMPREPLY+=(\"$word\")\n"
    "        fi\n"
    "    done < <(\"${words[0]}\" completion --line -- \"${words[@]:1}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _tidemark tidemark\n";

static const char zsh[] =
    "#compdef tidemark\n"
    "# zsh completion for tidemark; made by `tidemark completion zsh`\n"
    "_tidemark()\n{\n"
    "    local line word tab=$'\\t'\n"
    "    local -a found open\n"
    "    for line in \"${(@f)$(\"${(Q)words[1]}\" completion --line -- "
    "\"${(@Q)words[2,CURRENT-1]}\" \"$PREFIX\" 2>/dev/null)}\"; do\n"
    "        case $line in\n"
    "        ('') ;;\n"
    "        (:files*) compset -P '--*='; _files; return ;;\n"
    "        (*) word=${line%%$tab*}; line=\"${word//:/\\\\:}:${line#*$tab}\"\n"
    "            if [[ $word == *[=:] ]]; then open+=($line); else found+=($line); fi ;;\n"
    "        esac\n"
    "    done\n"
    "    _describe -t words tidemark found -- open -S ''\n"
    "}\n"
    "if [ \"$funcstack[1]\" = _tidemark ]; then _tidemark \"$@\"; else compdef _tidemark tidemark; "
    "fi\n";

static const char fish[] =
    "# fish completion for tidemark; made by `tidemark completion fish`\n"
    "function __tidemark_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l program $words[1]\n"
    "    set -e words[1]\n"
    "    for line in ($program completion --line -- $words \"$current\" 2>/dev/null)\n"
    "        if string match -q ':files*' -- $line\n"
    "            __fish_complete_path \"$current\"\n"
    "        else\n"
    "            printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c tidemark -f -a '(__tidemark_words)'\n";

tide_status cli_completion(struct cli *cli)
{
    static const struct {
        const char *name, *script;
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    cli->exact_output = true; /* a shell reads it */
    if (cli_flag(cli, "line") != NULL) {
        struct line line = {.cli = cli, .words = cli->arguments, .current = "", .prefix = ""};
        if (cli->arguments_count > 0) {
            line.count = cli->arguments_count - 1;
            line.current = cli->arguments[line.count];
        }
        answer_line(&line);
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        tide_json_set_text(&cli->json, "words", tide_buf_text(&cli->out));
        return TIDE_OK;
    }
    const char *wanted = cli->arguments_count == 0 ? "bash" : cli->arguments[0];
    for (size_t i = 0; cli->arguments_count < 2 && i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, wanted) != 0)
            continue;
        cli_print(cli, "%s", shells[i].script);
        tide_json_set_cstr(&cli->json, "completion", shells[i].script);
        return TIDE_OK;
    }
    return cli_wrong(cli, "Shells: bash, zsh, fish.", "there is no completion for \"%.60s\"",
                     cli->arguments[cli->arguments_count - 1]);
}
