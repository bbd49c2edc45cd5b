/* http_bad.h - the badly behaved half of http_server.h, on plain sockets. */
#ifndef TEST_SUPPORT_HTTP_BAD_H
#define TEST_SUPPORT_HTTP_BAD_H

#include <stdint.h>

struct test_bad;

struct test_bad *test_bad_start(void);
void test_bad_stop(struct test_bad *server);
unsigned test_bad_port(struct test_bad *server);
uint64_t test_bad_requests(struct test_bad *server);

#endif
