/* wrap.h - a function put between the code and what it calls, with the linker's --wrap. */
#ifndef TIDE_TESTS_WRAP_H
#define TIDE_TESTS_WRAP_H

/* Declares __real_NAME, and begins the definition of __wrap_NAME. */
#define WRAP(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

#endif
