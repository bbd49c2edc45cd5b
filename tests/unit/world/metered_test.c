/* metered_test.c - a NetworkManager of our own on a bus of our own (K7).
 *
 * The manager is this program, started again with the words "manager HOW ADDRESS": it says "ready" when it has its name
 * on the bus, "asked" for each question, and ends when its standard input does. */
#include "support/ok.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "world/desktop/metered.h"
#include "world/desktop/operation.h"

#include <fcntl.h>
#include <glib-unix.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LONG_MS = 100000, SHORT_MS = 50, KEPT_MS = TIDE_METERED_KEPT_MS };

/* ---- the manager, in its own process ---- */

static void say(const char *line)
{
    (void)puts(line);
    (void)fflush(stdout);
}

static void manager_call(GDBusConnection *bus, const gchar *sender, const gchar *path,
                         const gchar *interface, const gchar *method, GVariant *parameters,
                         GDBusMethodInvocation *call, gpointer arg)
{
    (void)bus, (void)sender, (void)path, (void)interface, (void)method;
    const char *how = arg, *owner = NULL, *property = NULL;
    g_variant_get(parameters, "(&s&s)", &owner, &property);
    say(strcmp(property, "Metered") == 0 ? "asked" : "asked for something else");
    if (strcmp(how, "dies") == 0)
        _exit(0);
    if (strcmp(how, "hangs") == 0)
        return;
    if (strcmp(how, "refuses") == 0)
        g_dbus_method_invocation_return_dbus_error(call, "org.example.No", "no");
    else if (strcmp(how, "text") == 0)
        g_dbus_method_invocation_return_value(call,
                                              g_variant_new("(v)", g_variant_new_string("1")));
    else if (strcmp(how, "signed") == 0)
        g_dbus_method_invocation_return_value(call, g_variant_new("(v)", g_variant_new_int32(1)));
    else
        g_dbus_method_invocation_return_value(
            call, g_variant_new("(v)", g_variant_new_uint32((guint32)strtoul(how, NULL, 10))));
}

static gboolean manager_end(gint fd, GIOCondition condition, gpointer arg)
{
    (void)fd, (void)condition, (void)arg;
    _exit(0);
}

static int manager_main(char *how, const char *address)
{
    /* GLib sends a value of no other type than this. */
    const char *type = strcmp(how, "text") == 0 ? "s" : strcmp(how, "signed") == 0 ? "i" : "u";
    char shape[200];
    (void)snprintf(shape, sizeof shape,
                   "<node><interface name='org.freedesktop.NetworkManager'>"
                   "<property name='Metered' type='%s' access='read'/></interface></node>",
                   type);
    static const GDBusInterfaceVTable table = {.method_call = manager_call};
    GDBusConnection *bus =
        g_dbus_connection_new_for_address_sync(address,
                                               G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
                                                   G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                               NULL, NULL, NULL);
    GDBusNodeInfo *node = g_dbus_node_info_new_for_xml(shape, NULL);
    if (bus == NULL || node == NULL ||
        g_dbus_connection_register_object(bus, "/org/freedesktop/NetworkManager",
                                          node->interfaces[0], &table, how, NULL, NULL) == 0)
        return 1;
    GVariant *named = g_dbus_connection_call_sync(
        bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
        g_variant_new("(su)", "org.freedesktop.NetworkManager", 3), NULL, 0, -1, NULL, NULL);
    if (named == NULL)
        return 1;
    (void)g_unix_fd_add(STDIN_FILENO, G_IO_HUP | G_IO_IN, manager_end, NULL);
    say("ready");
    g_main_loop_run(g_main_loop_new(NULL, FALSE));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "manager") == 0)
        return manager_main(argv[2], argv[3]);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return tests_run(NULL);
}

/* ---- programs ---- */

struct program {
    pid_t pid;    /* 0: none */
    int in;       /* ours, to its standard input */
    FILE *output; /* ours, of its standard output */
};

/* false: there is no such program. */
static bool program_start(struct program *program, const char *path, char *const *arguments)
{
    int in[2], out[2];
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO), 0);
    const int rc = posix_spawnp(&program->pid, path, &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    program->in = in[1];
    program->output = fdopen(out[0], "r");
    assert_non_null(program->output);
    if (rc != 0)
        program->pid = 0;
    return rc == 0;
}

static void program_line(struct program *program, char *line, int bytes)
{
    assert_non_null(fgets(line, bytes, program->output));
    line[strcspn(line, "\n")] = '\0';
}

static void program_says(struct program *program, const char *wanted)
{
    char line[256];
    program_line(program, line, sizeof line);
    assert_string_equal(line, wanted);
}

static void program_end(struct program *program)
{
    if (program->output == NULL)
        return;
    (void)close(program->in);
    if (program->pid > 0) {
        (void)kill(program->pid, SIGKILL);
        (void)waitpid(program->pid, NULL, 0);
    }
    (void)fclose(program->output);
    *program = (struct program){0};
}

/* ---- the stage ---- */

struct fixture {
    tide_world *world;
    char dir[32], address[512];
    struct program bus, manager;
    tide_metered *metered;
    bool answer; /* of a second thread */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, NULL));
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-metered.XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_metered_free(f->metered);
    program_end(&f->manager);
    program_end(&f->bus);
    tide_world_real_free(f->world);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
    return 0;
}

#define CASE(test) TEST_ON(test, struct fixture *f, set_up, tear_down)

static void bus_start(struct fixture *f)
{
    char path[64], config[80];
    (void)snprintf(path, sizeof path, "%s/bus.conf", f->dir);
    (void)snprintf(config, sizeof config, "--config-file=%s", path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(
        fprintf(file,
                "<busconfig><type>session</type><listen>unix:path=%s/bus</listen>"
                "<auth>EXTERNAL</auth><policy context='default'><allow send_destination='*'/>"
                "<allow receive_sender='*'/><allow own='*'/></policy></busconfig>",
                f->dir) > 0);
    assert_int_equal(fclose(file), 0);
    char *arguments[] = {(char[]){"dbus-daemon"}, config, (char[]){"--nofork"},
                         (char[]){"--print-address"}, NULL};
    if (!program_start(&f->bus, "dbus-daemon", arguments)) {
        print_message("skipped: there is no dbus-daemon\n");
        skip();
    }
    program_line(&f->bus, f->address, sizeof f->address);
}

static void manager_start(struct fixture *f, const char *how)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%s", how);
    char *arguments[] = {(char[]){"metered_test"}, (char[]){"manager"}, name, f->address, NULL};
    program_end(&f->manager);
    assert_true(program_start(&f->manager, "/proc/self/exe", arguments));
    program_says(&f->manager, "ready");
}

static void metered_make(struct fixture *f, uint32_t wait_ms)
{
    tide_metered_free(f->metered);
    f->metered = NULL;
    OK(tide_metered_new(&(struct tide_metered_options){.world = f->world,
                                                       .address = f->address,
                                                       .wait_ms = wait_ms},
                        tide_mem_heap(), &f->metered, NULL));
}

/* A bus and a manager that answers in a certain way, and the question to it. */
static bool asked(struct fixture *f, const char *how, uint32_t wait_ms)
{
    if (f->bus.pid == 0)
        bus_start(f);
    manager_start(f, how);
    metered_make(f, wait_ms);
    return tide_metered_now(f->metered, 1);
}

/* ---- what is answered ---- */

CASE(yes_and_a_guess_of_yes_are_metered)
{
    assert_true(asked(f, "1", LONG_MS));
    program_says(&f->manager, "asked");
    assert_true(asked(f, "3", LONG_MS));
}

CASE(no_a_guess_of_no_unknown_and_new_values_are_not)
{
    assert_false(asked(f, "2", LONG_MS));
    assert_false(asked(f, "4", LONG_MS));
    assert_false(asked(f, "0", LONG_MS));
    assert_false(asked(f, "5", LONG_MS));
    program_says(&f->manager, "asked");
}

CASE(a_value_of_another_type_or_a_refusal_is_not_metered)
{
    assert_false(asked(f, "text", LONG_MS));
    program_says(&f->manager, "asked");
    assert_false(asked(f, "signed", LONG_MS));
    program_says(&f->manager, "asked");
    assert_false(asked(f, "refuses", LONG_MS));
    program_says(&f->manager, "asked");
}

/* ---- no answer ---- */

CASE(without_a_manager_nothing_is_metered)
{
    bus_start(f);
    metered_make(f, LONG_MS);
    assert_false(tide_metered_now(f->metered, 1));
}

CASE(without_a_bus_nothing_is_metered)
{
    (void)snprintf(f->address, sizeof f->address, "unix:path=%s/none", f->dir);
    metered_make(f, LONG_MS);
    assert_false(tide_metered_now(f->metered, 1));
    (void)snprintf(f->address, sizeof f->address, "no address");
    metered_make(f, LONG_MS);
    assert_false(tide_metered_now(f->metered, 1));
    assert_false(tide_metered_now(NULL, 1));
}

CASE(a_manager_that_hangs_is_left)
{
    assert_false(asked(f, "hangs", SHORT_MS));
}

/* The kernel accepts for it, and nobody reads what is said. */
CASE(a_bus_that_hangs_is_left)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/deaf", f->dir);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    (void)snprintf(f->address, sizeof f->address, "unix:path=%s", address.sun_path);
    metered_make(f, SHORT_MS);
    assert_false(tide_metered_now(f->metered, 1));
    assert_int_equal(close(fd), 0);
}

CASE(a_manager_that_dies_meanwhile_is_none)
{
    assert_false(asked(f, "dies", LONG_MS));
    program_says(&f->manager, "asked");
}

static void ask_beside(void *arg)
{
    struct fixture *f = arg;
    f->answer = tide_metered_now(f->metered, KEPT_MS + 1);
}

CASE(a_bus_that_dies_meanwhile_is_none)
{
    tide_thread *thread = NULL;
    bus_start(f);
    manager_start(f, "hangs");
    metered_make(f, LONG_MS);
    f->answer = true;
    OK(tide_world_thread(f->world, "asks", ask_beside, f, &thread, NULL));
    program_says(&f->manager, "asked");
    program_end(&f->bus);
    tide_world_join(f->world, thread);
    assert_false(f->answer);
}

/* ---- how often ---- */

CASE(an_answer_is_kept_for_thirty_seconds)
{
    assert_true(asked(f, "1", LONG_MS)); /* at 1 */
    manager_start(f, "2");
    assert_true(tide_metered_now(f->metered, KEPT_MS));
    assert_false(tide_metered_now(f->metered, KEPT_MS + 1));
    program_end(&f->manager);
    assert_false(tide_metered_now(f->metered, 3 * KEPT_MS));
    manager_start(f, "1");
    assert_false(
        tide_metered_now(f->metered, 4 * KEPT_MS - 1)); /* that there was none is kept, too */
    assert_true(tide_metered_now(f->metered, 4 * KEPT_MS));
}

CASE(while_one_thread_asks_others_get_the_last_answer)
{
    tide_thread *thread = NULL;
    assert_true(asked(f, "1", LONG_MS));
    manager_start(f, "hangs");
    f->answer = true;
    OK(tide_world_thread(f->world, "asks", ask_beside, f, &thread, NULL));
    program_says(&f->manager, "asked");
    assert_true(tide_metered_now(f->metered, KEPT_MS + 1));
    program_end(&f->manager);
    tide_world_join(f->world, thread);
    assert_false(f->answer);
}
