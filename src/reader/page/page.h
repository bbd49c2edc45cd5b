/* page.h - the reader on the page of `tidemark serve`: its routes, and parts of messages. */
#ifndef TIDE_READER_PAGE_H
#define TIDE_READER_PAGE_H

#include "cli/serve/page.h"

extern const struct cli_api reader_page_api[];
extern const struct cli_api_object reader_page_objects[];
extern const struct cli_page_part reader_page_parts[];

#endif
