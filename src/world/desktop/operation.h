/* operation.h - one asynchronous operation of GLib, waited for, with a limit on its time.
 *
 *     struct tide_operation operation;
 *     tide_operation_begin(&operation, context);
 *     g_something_async(..., operation.cancellable, tide_operation_ended, &operation);
 *     if (!tide_operation_run(&operation, 5000))
 *         late; the operation was canceled and has ended with an error
 *     g_something_finish(operation.result, &failed);
 *     tide_operation_end(&operation);
 *
 * The context is the caller's own, because no thread runs GLib's default one, and one thread at a time
 * uses it. */
#ifndef TIDE_WORLD_DESKTOP_OPERATION_H
#define TIDE_WORLD_DESKTOP_OPERATION_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <gio/gio.h>
#pragma GCC diagnostic pop

#include <signal.h>
#include <stdbool.h>

struct tide_operation {
    GMainContext *context; /* borrowed */
    GMainLoop *loop;
    GCancellable *cancellable;
    GAsyncResult *result;
    bool late;
    sigset_t signals; /* the caller's */
};

void tide_operation_begin(struct tide_operation *operation, GMainContext *context);
/* The callback of the operation; `arg` is the struct. */
void tide_operation_ended(GObject *source, GAsyncResult *result, gpointer arg);
/* Waits; false: it took longer than `ms` and was canceled.  `result` is set in any case. */
bool tide_operation_run(struct tide_operation *operation, unsigned ms);
void tide_operation_end(struct tide_operation *operation);

#endif
