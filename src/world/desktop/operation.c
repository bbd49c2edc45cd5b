#include "world/desktop/operation.h"

#include "base/check.h"

#include <pthread.h>

void tide_operation_begin(struct tide_operation *operation, GMainContext *context)
{
    /* GLib starts its own threads, which must not receive our signals (world/real.h REAL1). */
    sigset_t all;
    (void)sigfillset(&all);
    TIDE_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &operation->signals) == 0);
    g_main_context_push_thread_default(context);
    operation->context = context;
    operation->loop = g_main_loop_new(context, FALSE);
    operation->cancellable = g_cancellable_new();
    operation->result = NULL;
    operation->late = false;
}

void tide_operation_ended(GObject *source, GAsyncResult *result, gpointer arg)
{
    (void)source;
    struct tide_operation *operation = arg;
    operation->result = g_object_ref(result);
    g_main_loop_quit(operation->loop);
}

static gboolean operation_late(gpointer arg)
{
    struct tide_operation *operation = arg;
    operation->late = true;
    g_cancellable_cancel(operation->cancellable); /* ends it, and so the loop */
    return G_SOURCE_REMOVE;
}

bool tide_operation_run(struct tide_operation *operation, unsigned ms)
{
    GSource *timer = g_timeout_source_new(ms);
    g_source_set_callback(timer, operation_late, operation, NULL);
    (void)g_source_attach(timer, operation->context);
    g_main_loop_run(operation->loop);
    g_source_destroy(timer);
    g_source_unref(timer);
    TIDE_ASSERT(operation->result != NULL);
    return !operation->late;
}

void tide_operation_end(struct tide_operation *operation)
{
    g_clear_object(&operation->result);
    g_object_unref(operation->cancellable);
    g_main_loop_unref(operation->loop);
    g_main_context_pop_thread_default(operation->context);
    TIDE_ASSERT(pthread_sigmask(SIG_SETMASK, &operation->signals, NULL) == 0);
}
