/* signin.h - what signin*.c share: pages for users, endpoints for programs.
 *
 * Invariants:
 *   BSGN1  nothing from outside reaches a page without being escaped.
 *   BSGN2  a redirect goes to a loopback address, or to Microsoft's page for native programs, which is
 *          here, and nowhere else; a request for another one gets a page.
 *   BSGN3  consent is given only with a ticket that a page of ours carried, once.
 */
#ifndef BOX_SIGNIN_H
#define BOX_SIGNIN_H

#include "cloudbox/signin/auth.h"

/* ---- pages (page.c) ---- */

/* "Error 400: redirect_uri_mismatch" and a sentence for the person who sees it. */
void box_page_error(struct box_call *call, int status, const char *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* `hint`: the address that is chosen at first, or the empty text. */
void box_page_consent(struct box_call *call, const struct box_ask *ask, tide_text ticket,
                      tide_text hint, uint32_t ticked);

/* A page with one sentence. */
void box_page_say(struct box_call *call, const char *title, const char *text);
/* A page that asks for the code which a device shows. */
void box_page_device(struct box_call *call);
/* A page that asks for the type of a new client. */
void box_page_client(struct box_call *call);

/* ---- getting a client (setup.c) ---- */

box_handler box_setup_page;
box_handler box_setup_client;

/* ---- asking (signin.c) ---- */

void box_signin_authorize(struct box_call *call, bool microsoft);
/* Browsers say so when a foreign page sent the form (BSGN3, a second lock). */
bool box_signin_foreign(const struct box_call *call);

/* ---- endpoints for programs (token.c) ---- */

box_handler box_signin_token;
box_handler box_signin_revoke;
box_handler box_signin_certs;
box_handler box_signin_certs_pem;
box_handler box_signin_discovery;
box_handler box_signin_tokeninfo;
box_handler box_signin_userinfo;
box_handler box_signin_userinfo_v2;

/* No cache may keep this answer. */
void box_answer_secret(struct box_answer *answer);
/* Form body and query together, each name once.  false: the answer says what is
 * wrong with them. */
bool box_signin_form(struct box_call *call, struct box_param *params, size_t *count_out);
void box_oauth_fail(struct box_call *call, int http, const char *error, const char *text);

#endif
