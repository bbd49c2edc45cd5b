#include "world/desktop/metered.h"

#include "base/check.h"
#include "world/desktop/operation.h"

#define MANAGER      "org.freedesktop.NetworkManager"
#define MANAGER_PATH "/org/freedesktop/NetworkManager"

/* NMMetered, as NetworkManager documents it; 0 is unknown, 2 is no, 4 is "guess: no". */
enum { METERED_YES = 1, METERED_GUESS_YES = 3 };

struct tide_metered {
    tide_mem *mem;
    tide_world *world;
    char *address; /* GLib's; NULL: the system's */
    uint32_t wait_ms;
    tide_lock *lock;

    /* Under the lock. */
    bool asked, asking; /* ever; right now, on some thread */
    uint64_t asked_ms;
    bool metered;
};

tide_status tide_metered_new(const struct tide_metered_options *options, tide_mem *mem,
                             tide_metered **metered_out, tide_error *err)
{
    TIDE_ASSERT(options->world != NULL);
    tide_metered *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL || tide_lock_new(options->world, &self->lock) != TIDE_OK) {
        tide_mem_free(mem, self, sizeof *self);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to ask about the network");
    }
    self->mem = mem;
    self->world = options->world;
    self->address = g_strdup(options->address);
    self->wait_ms = options->wait_ms > 0 ? options->wait_ms : TIDE_METERED_WAIT_MS;
    *metered_out = self;
    return TIDE_OK;
}

void tide_metered_free(tide_metered *self)
{
    if (self == NULL)
        return;
    TIDE_ASSERT(!self->asking);
    tide_lock_free(self->world, self->lock);
    g_free(self->address);
    tide_mem_free(self->mem, self, sizeof *self);
}

/* ---- one question ---- */

/* What is left of the time for the whole question; never 0, so that what is there already is read. */
static unsigned left_ms(gint64 deadline_us)
{
    const gint64 left = (deadline_us - g_get_monotonic_time()) / 1000;
    return left > 1 ? (unsigned)left : 1;
}

/* A connection of our own: the one that GLib shares would end the process together with the bus. */
static GDBusConnection *bus_connect(const tide_metered *self, GMainContext *context,
                                    gint64 deadline_us)
{
    gchar *address = self->address != NULL
                         ? g_strdup(self->address)
                         : g_dbus_address_get_for_bus_sync(G_BUS_TYPE_SYSTEM, NULL, NULL);
    if (address == NULL)
        return NULL;
    struct tide_operation operation;
    tide_operation_begin(&operation, context);
    g_dbus_connection_new_for_address(address,
                                      G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
                                          G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                      NULL, operation.cancellable, tide_operation_ended,
                                      &operation);
    (void)tide_operation_run(&operation, left_ms(deadline_us));
    GDBusConnection *bus = g_dbus_connection_new_for_address_finish(operation.result, NULL);
    tide_operation_end(&operation);
    g_free(address);
    return bus;
}

/* The reply, "(v)"; NULL: none.  LNK3: the bus would start NetworkManager. */
static GVariant *property_get(GDBusConnection *bus, GMainContext *context, gint64 deadline_us)
{
    struct tide_operation operation;
    tide_operation_begin(&operation, context);
    g_dbus_connection_call(bus, MANAGER, MANAGER_PATH, "org.freedesktop.DBus.Properties", "Get",
                           g_variant_new("(ss)", MANAGER, "Metered"), G_VARIANT_TYPE("(v)"),
                           G_DBUS_CALL_FLAGS_NO_AUTO_START, G_MAXINT, operation.cancellable,
                           tide_operation_ended, &operation);
    (void)tide_operation_run(&operation, left_ms(deadline_us));
    GVariant *reply = g_dbus_connection_call_finish(bus, operation.result, NULL);
    tide_operation_end(&operation);
    return reply;
}

static bool reply_says_metered(GVariant *reply)
{
    GVariant *value = NULL;
    g_variant_get(reply, "(v)", &value);
    bool metered = false;
    if (g_variant_is_of_type(value, G_VARIANT_TYPE_UINT32)) {
        const guint32 kind = g_variant_get_uint32(value);
        metered = kind == METERED_YES || kind == METERED_GUESS_YES;
    }
    g_variant_unref(value);
    return metered;
}

static bool ask(const tide_metered *self)
{
    const gint64 deadline_us = g_get_monotonic_time() + (gint64)self->wait_ms * 1000;
    GMainContext *context = g_main_context_new();
    GDBusConnection *bus = bus_connect(self, context, deadline_us);
    GVariant *reply = bus != NULL ? property_get(bus, context, deadline_us) : NULL;
    const bool metered = reply != NULL && reply_says_metered(reply); /* LNK1 */
    g_clear_pointer(&reply, g_variant_unref);
    g_clear_object(&bus); /* closes it */
    g_main_context_unref(context);
    return metered;
}

bool tide_metered_now(tide_metered *self, uint64_t now_ms)
{
    if (self == NULL)
        return false;
    tide_lock_take(self->world, self->lock);
    const bool fresh = self->asked && now_ms < self->asked_ms + TIDE_METERED_KEPT_MS;
    const bool mine = !fresh && !self->asking; /* LNK2 */
    bool metered = self->metered;
    if (mine)
        self->asking = true;
    tide_lock_drop(self->world, self->lock);
    if (!mine)
        return metered;

    metered = ask(self);
    tide_lock_take(self->world, self->lock);
    self->asked = true;
    self->asking = false;
    self->asked_ms = now_ms;
    self->metered = metered;
    tide_lock_drop(self->world, self->lock);
    return metered;
}
