/* page.h - drives for the page of `tidemark serve`: routes of its API that run commands of drives
 * (cli/serve/api.h), metrics; and what programs may read (mcp/tool.h). */
#ifndef TIDE_DRIVE_PAGE_H
#define TIDE_DRIVE_PAGE_H

#include "cli/serve/api.h"

extern const struct cli_api drive_page_api[];
extern const struct tide_tool drive_page_tools[];
extern const struct cli_api_object drive_page_objects[];

/* struct tide_system.metrics: of all drives of this process together. */
void drive_page_metrics(const json_t *shown, tide_metrics *lines);

#endif
