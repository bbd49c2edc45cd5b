/* api.h - /api/v1: what commands print with --json, and what they change, over HTTP (E9.1).
 *
 * A route names a command.  A parameter of the query is a flag of that command that takes a value, a
 * part of the path its argument; a POST has flags in a JSON object instead, and the body of a PUT is the
 * command's standard input.  So the API and the command line cannot differ: same code, same objects,
 * same errors.
 *
 *     GET  /api/v1/jobs?state=failed&limit=20    tidemark jobs list --state=failed --limit=20 --json
 *     GET  /api/v1/jobs/88121/why                tidemark jobs explain 88121 --json
 *     POST /api/v1/jobs/retry                    tidemark jobs retry --state=failed --expect=2
 *          {"filter":{"state":"failed"},"expect":2}
 *
 * openapi.json is made from the table of routes and the tables of commands (document.c).
 *
 * Invariants (fuzz/cli_body.c):
 *   WRD1  a request chooses values alone: of the words that are run, it never makes a switch, a flag
 *         that the command does not have, or one that all commands have (--home, --ledger, --set).
 *   WRD2  a change of jobs or items names them, or says how many it expects to match.
 */
#ifndef TIDE_CLI_SERVE_API_H
#define TIDE_CLI_SERVE_API_H

#include "cli/serve/serve.h"

enum {
    CLI_API_IDS_MAX = 50,
    CLI_API_WORDS_MAX = CLI_API_IDS_MAX + 12,
    CLI_API_VALUE_BYTES_MAX = 8 << 10, /* a query of mail */
    CLI_API_ROOM_BYTES = 64 << 10,     /* of all words of a request */
    CLI_API_FILE_BYTES_MAX = 25 << 20, /* of a body that is a file */
};

/* The fields that the body of a POST may have. */
enum {
    CLI_API_CHOICE = 1, /* {ids} or {filter, expect} */
    CLI_API_REASON = 2, /* {reason} */
};

/* Bodies that are the standard input of the command. */
enum {
    CLI_API_OBJECT = 1, /* a JSON object */
    CLI_API_FILE = 2,   /* bytes of any type */
};

/* A route of the API and the command behind it. */
struct cli_api {
    const char *method, *path;
    const char *group, *verb; /* verb NULL: none */
    const char *first;        /* a word before the command's arguments: "list"; NULL: none */
    const char *part;         /* of the path: the command's argument; NULL: none */
    const char *part_next;    /* of the path: the argument after that; NULL: none */
    const char *flag_part;    /* of the path: the value of the flag of this name; NULL: none */
    const char *always;       /* a switch that is always given; NULL: none */
    const char *query;  /* a parameter that is the command's argument, and required; NULL: none */
    const char *params; /* flags that are parameters: "state limit"; NULL: none */
    bool view;          /* adds `view`: where the parts of the item are (page.h) */
    unsigned body;
    const char *values; /* fields of a POST's body that are flags: "keep"; NULL: none */
    const char *last;   /* a field of it that is the last argument, and required; NULL: none */
    const char *list;   /* a field of it with 1 to 50 texts: the arguments; NULL: none */
    bool list_free; /* which may be empty, or missing: the command knows whether it must be there */
    int input;      /* the body of a PUT goes to the command as it is; 0: it has none */
    bool repeats;   /* a POST that may come twice without a record of its key */
    int status;     /* of a success; 0: 200 */
    /* NONE: LOOK for a GET, WORK for a POST. */
    tide_httpd_scope scope;
    const char *fields;                /* of the answer (document.c) */
    const struct tide_system *system;  /* whose route it is; NULL: of none */
    struct cli_serve *serve;           /* set by cli_api_routes() */
    const struct cli_command *command; /* set by cli_api_routes() */
};

/* An object in answers, and its fields (document.c). */
struct cli_api_object {
    const char *name, *fields;
};

/* The arguments of a command. */
struct cli_api_words {
    const char *list[CLI_API_WORDS_MAX];
    size_t count;
    char room[CLI_API_ROOM_BYTES];
    size_t used;
};

/* Makes the words of a request.  NULL: they are made; else what is wrong with it. */
const char *cli_api_words(const struct cli_api *api, const struct tide_httpd_request *request,
                          struct cli_api_words *words);

/* Whether a list of words such as `params` has this one. */
bool cli_api_lists(const char *list, tide_text word);

/* Routes that run a command and belong to no system; ends with a NULL path. */
extern const struct cli_api cli_api_table[];
/* The command of a route; NULL: the program has none. */
const struct cli_command *cli_api_command(const struct cli *cli, const struct cli_api *api);
/* Adds the routes to those of `serve`, and the document that describes them all. */
tide_status cli_api_routes(struct cli_serve *serve, tide_error *err);
void cli_api_free(struct cli_serve *serve);
tide_httpd_handler cli_api_run; /* of all of them; its argument is a struct cli_api */

/* ---- document.c ---- */
tide_status cli_api_document(const struct cli_serve *serve, tide_buf *text);

#endif
