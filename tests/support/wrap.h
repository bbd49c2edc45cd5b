/* wrap.h - a function put between the code and what it calls, with the linker's --wrap. */
#ifndef TIDE_TESTS_WRAP_H
#define TIDE_TESTS_WRAP_H

/* Declares __real_NAME, and begins the definition of __wrap_NAME, which has the type of NAME: the linker
 * would not notice another one. */
#define WRAP(type, name, ...)                                                                      \
    __typeof__(name) __real_##name;                                                                \
    __typeof__(name) __wrap_##name;                                                                \
    type __wrap_##name(__VA_ARGS__)

#endif
