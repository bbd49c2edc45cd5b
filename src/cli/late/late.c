#include "cli/late/late.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

/* Nothing can be told to the caller, who knows of no failure.  Other threads still run: what is
 * durable stays so, as after a kill. */
static _Noreturn void give_up(const struct late_library *library)
{
    const char *why = dlerror();
    (void)fprintf(
        stderr,
        "tidemark: %s cannot be loaded: %s.\n"
        "Install the package that has it, in the version that this program was built with.\n",
        library->file, why == NULL ? "the reason is not known" : why);
    _exit(127);
}

/* Two threads may do this at once: dlopen() takes turns, and both store the same addresses. */
void late_load(const struct late_library *library)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL); /* never closed */
    if (handle == NULL)
        give_up(library);
    for (size_t i = 0; i < library->count; i++) {
        void *function = dlsym(handle, library->names[i]);
        if (function == NULL)
            give_up(library);
        __atomic_store_n(&library->slots[i], function, __ATOMIC_RELEASE);
    }
}
