#include "world/desktop/keyring.h"

#include "base/check.h"

#ifndef TIDE_HAVE_LIBSECRET

tide_status tide_keyring_open(const char *home, tide_mem *mem, tide_keyring **keyring_out,
                              tide_error *err)
{
    TIDE_ASSERT(home != NULL);
    TIDE_ASSERT(mem != NULL);
    TIDE_ASSERT(keyring_out != NULL);
    return tide_error_set(err, TIDE_NOT_FOUND, "this program was built without a keyring");
}

#else

#include "world/desktop/operation.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <libsecret/secret.h>
#pragma GCC diagnostic pop

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPEN_WAIT_MS = 5000, WAIT_MS = 60000 };

static const SecretSchema schema = {
    .name = "io.tidemark.Secret",
    .flags = SECRET_SCHEMA_NONE,
    .attributes = {{"home", SECRET_SCHEMA_ATTRIBUTE_STRING},
                   {"name", SECRET_SCHEMA_ATTRIBUTE_STRING}},
};

struct secret_keyring {
    tide_keyring base;
    tide_mem *mem;
    GMutex turn;           /* not a tide_lock: GLib waits while it is held (WLD3) */
    GMainContext *context; /* our own: no thread runs GLib's default one */
    char home[PATH_MAX];
};

/* ---- one operation, with a limit on its time ---- */

static void operation_begin(struct secret_keyring *self, struct tide_operation *operation)
{
    g_mutex_lock(&self->turn);
    tide_operation_begin(operation, self->context);
}

/* Turns GLib's error into ours; KEY3: its text comes from the service and is about the service. */
static tide_status operation_end(struct secret_keyring *self, struct tide_operation *operation,
                                 GError *failed, const char *what, tide_error *err)
{
    tide_status rc = TIDE_OK;
    if (operation->late)
        rc = tide_error_set(err, TIDE_TIMEOUT, "the keyring did not answer in time: is it locked?");
    else if (failed != NULL)
        rc =
            tide_error_set(err, TIDE_IO, "the keyring failed to %s: %.200s", what, failed->message);
    g_clear_error(&failed);
    tide_operation_end(operation);
    g_mutex_unlock(&self->turn);
    return rc;
}

/* ---- the table ---- */

static GHashTable *attributes_of(struct secret_keyring *self, const char *name)
{
    GHashTable *attributes = g_hash_table_new(g_str_hash, g_str_equal);
    (void)g_hash_table_insert(attributes, (gpointer) "home", self->home);
    (void)g_hash_table_insert(attributes, (gpointer) "name", (gpointer)(uintptr_t)name);
    return attributes;
}

static tide_status keyring_put(tide_keyring *keyring, const char *name, tide_text value,
                               tide_error *err)
{
    struct secret_keyring *self = (struct secret_keyring *)keyring;
    char label[400];
    (void)snprintf(label, sizeof label, "Tidemark: %s", name);
    struct tide_operation operation;
    operation_begin(self, &operation);
    SecretValue *secret = secret_value_new(value.data, (gssize)value.bytes, "text/plain");
    GHashTable *attributes = attributes_of(self, name);
    secret_password_storev_binary(&schema, attributes, SECRET_COLLECTION_DEFAULT, label, secret,
                                  operation.cancellable, tide_operation_ended, &operation);
    (void)tide_operation_run(&operation, WAIT_MS);
    GError *failed = NULL;
    (void)secret_password_store_finish(operation.result, &failed);
    g_hash_table_unref(attributes);
    secret_value_unref(secret); /* wipes */
    return operation_end(self, &operation, failed, "store a secret", err);
}

static tide_status keyring_get(tide_keyring *keyring, const char *name, tide_buf *out,
                               tide_error *err)
{
    struct secret_keyring *self = (struct secret_keyring *)keyring;
    struct tide_operation operation;
    operation_begin(self, &operation);
    GHashTable *attributes = attributes_of(self, name);
    secret_password_lookupv(&schema, attributes, operation.cancellable, tide_operation_ended,
                            &operation);
    (void)tide_operation_run(&operation, WAIT_MS);
    GError *failed = NULL;
    SecretValue *secret = secret_password_lookup_binary_finish(operation.result, &failed);
    g_hash_table_unref(attributes);
    tide_status rc = operation_end(self, &operation, failed, "read a secret", err);
    if (rc == TIDE_OK && secret == NULL)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no %s in the keyring", name);
    if (rc == TIDE_OK) {
        gsize bytes = 0;
        const gchar *value = secret_value_get(secret, &bytes);
        rc = tide_buf_add(out, value, bytes);
        if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "no memory for %s from the keyring", name);
    }
    if (secret != NULL)
        secret_value_unref(secret);
    return rc;
}

static tide_status keyring_remove(tide_keyring *keyring, const char *name, tide_error *err)
{
    struct secret_keyring *self = (struct secret_keyring *)keyring;
    struct tide_operation operation;
    operation_begin(self, &operation);
    GHashTable *attributes = attributes_of(self, name);
    secret_password_clearv(&schema, attributes, operation.cancellable, tide_operation_ended,
                           &operation);
    (void)tide_operation_run(&operation, WAIT_MS);
    GError *failed = NULL;
    const gboolean removed = secret_password_clear_finish(operation.result, &failed);
    g_hash_table_unref(attributes);
    TIDE_TRY(operation_end(self, &operation, failed, "remove a secret", err));
    if (!removed)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no %s in the keyring", name);
    return TIDE_OK;
}

static void keyring_close(tide_keyring *keyring)
{
    struct secret_keyring *self = (struct secret_keyring *)keyring;
    g_main_context_unref(self->context);
    g_mutex_clear(&self->turn);
    tide_mem_free(self->mem, self, sizeof *self);
}

static const struct tide_keyring_ops keyring_ops = {keyring_put, keyring_get, keyring_remove,
                                                    keyring_close};

/* KEY2: without a bus, GLib would start one. */
static bool bus_is_there(void)
{
    const char *address = getenv("DBUS_SESSION_BUS_ADDRESS");
    if (address != NULL && address[0] != '\0')
        return true;
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX];
    struct stat info;
    return runtime != NULL &&
           (size_t)snprintf(path, sizeof path, "%s/bus", runtime) < sizeof path &&
           stat(path, &info) == 0 && S_ISSOCK(info.st_mode);
}

tide_status tide_keyring_open(const char *home, tide_mem *mem, tide_keyring **keyring_out,
                              tide_error *err)
{
    if (!bus_is_there())
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no session bus, so no keyring");
    struct secret_keyring *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the keyring");
    self->base.ops = &keyring_ops;
    self->mem = mem;
    g_mutex_init(&self->turn);
    self->context = g_main_context_new();
    (void)snprintf(self->home, sizeof self->home, "%s", home);

    struct tide_operation operation;
    operation_begin(self, &operation);
    secret_service_get(SECRET_SERVICE_OPEN_SESSION, operation.cancellable, tide_operation_ended,
                       &operation);
    (void)tide_operation_run(&operation, OPEN_WAIT_MS);
    GError *failed = NULL;
    SecretService *service = secret_service_get_finish(operation.result, &failed);
    tide_error why = {0};
    tide_status rc = operation_end(self, &operation, failed, "answer", &why);
    if (service != NULL)
        g_object_unref(service);
    if (rc != TIDE_OK) {
        keyring_close(&self->base);
        return tide_error_set(err, TIDE_NOT_FOUND, "%s", why.text);
    }
    *keyring_out = &self->base;
    return TIDE_OK;
}

#endif
