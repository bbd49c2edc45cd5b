/* person_cli.c - the commands of the program in the simulated world.
 *
 * What main() does is done here, and the linker puts these functions between the program
 * and what it asks of the machine (--wrap in meson.build): its world is the simulated one,
 * nothing listens on its socket, there is no keyring and no terminal, and Ctrl-C comes
 * when a person has waited long enough.  With no person in the process they pass
 * everything on. */
#include "person.h"
#include "support/wrap.h"

#include "cli/cli.h"
#include "tidemark.h"
#include "world/desktop/keyring.h"
#include "world/socket.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 24, TICK_MS_MAX = 15000 };

typedef void on_signal(int number);

static struct {
    struct person *person; /* NULL: none; the rest is for one command */
    on_signal *interrupt;
    bool interrupted;
} here;

/* ---- what the program asks of the machine ---- */

WRAP(tide_status, tide_world_real_new, tide_mem *mem, tide_world **world_out, tide_error *err)
{
    if (here.person == NULL)
        return __real_tide_world_real_new(mem, world_out, err);
    *world_out = here.person->world;
    return TIDE_OK;
}

WRAP(void, tide_world_real_free, tide_world *world)
{
    if (here.person == NULL)
        __real_tide_world_real_free(world);
}

WRAP(tide_status, tide_engine_open, const struct tide_engine_options *options,
     tide_engine **engine_out, tide_error *err)
{
    struct tide_engine_options alone = *options;
    alone.no_control_socket = alone.no_control_socket || here.person != NULL;
    return __real_tide_engine_open(&alone, engine_out, err);
}

/* A command looks at its engine several times a second; no user watches here, so the
 * pauses between two looks grow.  This is also where a person loses patience. */
WRAP(tide_status, tide_engine_wait, tide_engine *engine, uint64_t wait_ms, tide_error *err)
{
    if (here.person == NULL)
        return __real_tide_engine_wait(engine, wait_ms, err);
    const uint64_t for_ms = tide_world_now_ms(here.person->world) - here.person->began_ms;
    if (for_ms >= PERSON_PATIENCE_MS && here.interrupt != NULL && !here.interrupted) {
        here.interrupted = true;
        here.interrupt(SIGINT);
    }
    uint64_t pause_ms = for_ms / 8 < TICK_MS_MAX ? for_ms / 8 : TICK_MS_MAX;
    if (here.interrupted || pause_ms < wait_ms)
        pause_ms = wait_ms;
    return __real_tide_engine_wait(engine, pause_ms, err);
}

WRAP(tide_status, tide_socket_ask, tide_world *world, tide_mem *mem, const char *path,
     tide_text request, uint32_t timeout_ms, const tide_cancel *cancel, tide_socket_line *line,
     void *line_arg, tide_error *err)
{
    if (here.person == NULL)
        return __real_tide_socket_ask(world, mem, path, request, timeout_ms, cancel, line, line_arg,
                                      err);
    return tide_error_set(err, TIDE_NOT_FOUND, "no engine listens on %s", path);
}

WRAP(tide_status, tide_keyring_open, const char *home, tide_mem *mem, tide_keyring **keyring_out,
     tide_error *err)
{
    if (here.person == NULL)
        return __real_tide_keyring_open(home, mem, keyring_out, err);
    return tide_error_set(err, TIDE_NOT_FOUND, "there is no keyring");
}

WRAP(on_signal *, signal, int number, on_signal *handler)
{
    if (here.person == NULL)
        return __real_signal(number, handler);
    if (number == SIGINT)
        here.interrupt = handler == SIG_DFL || handler == SIG_IGN ? NULL : handler;
    return SIG_DFL;
}

static bool is_ours(const char *path)
{
    return here.person != NULL && strncmp(path, PERSON_HOME "/", sizeof PERSON_HOME) == 0;
}

static void nothing(const char *name, void *arg)
{
    (void)name;
    (void)arg;
}

/* The mode of a file of the simulated disk; 0: there is none. */
static mode_t mode_of(const char *path)
{
    if (tide_sim_disk_file_bytes(here.person->sim, path) >= 0)
        return S_IFREG | 0600;
    return tide_dir_list(here.person->world, path, nothing, NULL, NULL) == TIDE_OK ? S_IFDIR | 0700
                                                                                   : 0;
}

/* The same function by both of its names: which one is called depends on the C library. */
WRAP(int, stat64, const char *path, struct stat64 *out)
{
    if (!is_ours(path))
        return __real_stat64(path, out);
    *out = (struct stat64){.st_mode = mode_of(path)};
    errno = ENOENT;
    return out->st_mode == 0 ? -1 : 0;
}

int __wrap_stat(const char *path, struct stat *out);
int __wrap_stat(const char *path, struct stat *out)
{
    return __wrap_stat64(path, (struct stat64 *)(void *)out); /* the same: offsets have 64 bits */
}

WRAP(int, access, const char *path, int mode)
{
    if (!is_ours(path))
        return __real_access(path, mode);
    errno = ENOENT;
    return mode_of(path) == 0 ? -1 : 0;
}

WRAP(int, isatty, int fd)
{
    return here.person == NULL ? __real_isatty(fd) : 0;
}

/* Its number stands in locks and run ids: two runs of a seed must be the same. */
WRAP(pid_t, getpid, void)
{
    return here.person == NULL ? __real_getpid() : 4711;
}

/* ---- a command ---- */

/* As main() ends; what it prints is kept. */
static int finish(struct cli *cli, tide_status rc, char **out)
{
    char *lines = NULL;
    size_t out_bytes = 0;
    size_t lines_bytes = 0;
    FILE *const terminal = stdout;
    FILE *const errors = stderr;
    stdout = open_memstream(out, &out_bytes);
    stderr = open_memstream(&lines, &lines_bytes);
    TIDE_ASSERT(stdout != NULL && stderr != NULL);
    const int code = cli_finish(cli, rc);
    (void)fclose(stdout);
    (void)fclose(stderr);
    stdout = terminal;
    stderr = errors;
    free(lines);
    return code;
}

static int run(int argc, char **argv, char **out)
{
    struct cli cli = {.mem = tide_mem_heap(), .systems = cli_systems};
    tide_buf_init(&cli.out, cli.mem, CLI_OUT_BYTES_MAX);
    tide_json_object(&cli.json);
    int code = CLI_EXIT_USAGE;
    tide_status rc = cli_args_parse(&cli, argc, argv);
    if (rc == TIDE_OK) {
        rc = cli_start(&cli);
        if (rc == TIDE_OK)
            rc = cli.command->run(&cli);
        code = finish(&cli, rc, out);
    }
    cli_end(&cli);
    return code;
}

static int count_words(const char *const *words, char **argv)
{
    static const char *const always[] = {"--home", PERSON_HOME, "--quiet", "--json"};
    int argc = 0;
    argv[argc++] = (char *)(uintptr_t) "tidemark";
    for (; *words != NULL && argc < WORDS_MAX - 5; words++)
        argv[argc++] = (char *)(uintptr_t)*words;
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        argv[argc++] = (char *)(uintptr_t)always[i];
    argv[argc] = NULL;
    return argc;
}

struct person_said person_command(struct person *self, const char *const *words)
{
    char *argv[WORDS_MAX];
    char *out = NULL;
    struct person_said said = {.code = 0};
    const int argc = count_words(words, argv);
    here.person = self;
    here.interrupt = NULL;
    here.interrupted = false;
    self->calls = 0;
    self->began_ms = tide_world_now_ms(self->world);
    tide_sim_note(self->sim, "person: %s %s %s", argv[1], argv[2], argv[3]);
    said.code = run(argc, argv, &out);
    said.interrupted = here.interrupted;
    said.killed = tide_world_dead(self->world);
    here.person = NULL;
    said.json = out == NULL ? NULL : json_loads(out, 0, NULL);
    tide_sim_note(self->sim, "person: exit %d%s%s", said.code, said.killed ? ", killed" : "",
                  said.interrupted ? ", interrupted" : "");
    if (getenv("TIDE_SIM_SAY") != NULL)
        (void)fprintf(stderr, "[%8.1f s] %s %s %s: exit %d%s%s %s",
                      (double)tide_world_now_us(self->world) / 1e6, argv[1], argv[2], argv[3],
                      said.code, said.killed ? " killed" : "",
                      said.interrupted ? " interrupted" : "", out == NULL ? "\n" : out);
    free(out);
    self->totals.commands++;
    self->totals.interrupts += said.interrupted;
    self->totals.kills += said.killed;
    return said;
}

void person_said_done(struct person_said *said)
{
    json_decref(said->json);
    said->json = NULL;
}
