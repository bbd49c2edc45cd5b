/* people.c - `tidemark reader people`: completes a recipient as it is typed (K14).  The list is brought up to
 * date by the process that stays, after the answer. */
#include "reader/commands/home.h"

#include "mail/people/people.h"
#include "reader/reader.h"

#include <stdio.h>

enum { LIMIT = 12 };

static tide_status limit_of(struct cli *cli, size_t *limit_out)
{
    uint64_t limit = LIMIT;
    if (cli_flag(cli, "limit") != NULL)
        TIDE_TRY(cli_number(cli, cli_flag(cli, "limit"), "--limit", &limit));
    if (limit == 0 || limit > TIDE_PEOPLE_FOUND_MAX) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID, "Type more of the name.",
                        "--limit must be between 1 and %d", TIDE_PEOPLE_FOUND_MAX);
    }
    *limit_out = (size_t)limit;
    return TIDE_OK;
}

/* What has changed since is known to the next one who asks. */
static void update_ask(struct cli *cli, const char *email)
{
    json_auto_t *answer = NULL;
    tide_json request;
    tide_json_object(&request);
    tide_json_set_cstr(&request, "account", email);
    if (reader_ask(cli, "people", &request, &answer) != TIDE_OK) {
        cli->err = (tide_error){TIDE_OK, 0, ""}; /* no process stays: what is known is shown */
        cli->hint[0] = '\0';
    }
}

static tide_status people_open(struct cli *cli, const char *email, tide_people **people_out)
{
    char dir[CLI_PATH_BYTES + 16];
    char path[TIDE_CACHE_PATH_BYTES];
    (void)snprintf(dir, sizeof dir, "%s/reader", cli->cache_dir);
    TIDE_TRY(tide_reader_people_path(dir, email, path, &cli->err));
    const struct tide_people_options options = {
        .path = path, .world = cli->world, .read_only = true};
    const tide_status rc = tide_people_open(&options, cli->mem, people_out, &cli->err);
    if (rc != TIDE_NOT_FOUND && rc != TIDE_CORRUPT && rc != TIDE_INVALID)
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""}; /* it is being made */
    return TIDE_OK;
}

static tide_status people_show(struct cli *cli, const char *email, size_t limit)
{
    static const char *const headings[] = {"NAME", "ADDRESS"};
    const tide_text self = tide_text_of(email);
    struct tide_person found[TIDE_PEOPLE_FOUND_MAX];
    tide_people *people = NULL;
    tide_json items;
    size_t count = 0;
    TIDE_TRY(people_open(cli, email, &people));
    tide_status rc = people == NULL ? TIDE_OK
                                    : tide_people_find(people, tide_text_of(cli->arguments[1]),
                                                       &self, 1, limit, found, &count, &cli->err);
    tide_people_close(people);
    tide_json_array(&items);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "name", found[i].name);
        tide_json_set_cstr(&one, "address", found[i].address);
        tide_json_append(&items, &one);
        cli_cell_text(cli, tide_text_of(found[i].name));
        cli_cell_text(cli, tide_text_of(found[i].address));
    }
    cli_table_end(cli, "nobody");
    tide_json_set(&cli->json, "items", &items);
    return rc;
}

tide_status cli_reader_people(struct cli *cli)
{
    struct reader_home home;
    size_t limit = 0;
    TIDE_TRY(limit_of(cli, &limit));
    tide_status rc = reader_home_open(cli, cli->arguments[0], &home); /* there is such an account */
    reader_home_close(&home);
    if (rc == TIDE_OK)
        update_ask(cli, home.email);
    return rc == TIDE_OK ? people_show(cli, home.email, limit) : rc;
}
