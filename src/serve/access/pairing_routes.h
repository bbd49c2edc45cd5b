/* pairing_routes.h - pairing over HTTP.
 *
 *     POST /api/v1/pairings  {}                    201 {"code":"KT4-9QX","ticket":"..."}
 *     GET  /api/v1/pairings  Authorization: Pairing TICKET
 *          200 {"key":"..."}   once, after the terminal said yes
 *          202 {}              25 s passed; ask again
 *          403, 404, 409       refused; over or unknown; a newer request waits
 *
 * In the table of routes both are MEMORY, of scope NONE, with the pairings as their arg; the POST
 * has TIDE_HTTPD_REPEATS and a body_bytes_max of TIDE_PAIRING_BODY_BYTES_MAX.  tide_httpd_wake() is
 * the pairings' `wake`.
 */
#ifndef TIDE_SERVE_ACCESS_PAIRING_ROUTES_H
#define TIDE_SERVE_ACCESS_PAIRING_ROUTES_H

#include "serve/access/pairing.h"
#include "serve/http/answer.h"

enum { TIDE_PAIRING_BODY_BYTES_MAX = 256, TIDE_PAIRING_HOLD_MS = 25000 };

tide_httpd_handler tide_pairing_post;
tide_httpd_handler tide_pairing_get;

/* What a User-Agent header means, in words of ours: "Chromium on Linux". */
void tide_pairing_agent(tide_text header, char agent_out[TIDE_PAIRING_AGENT_BYTES_MAX]);

#endif
