/* ok.h - a call that must succeed; a failure names its line. */
#ifndef TIDE_TESTS_SUPPORT_OK_H
#define TIDE_TESTS_SUPPORT_OK_H

#define OK(call) assert_int_equal((call), TIDE_OK)

#endif
