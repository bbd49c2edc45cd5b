/* The calls to the Gmail API, through the engine and the simulated network to the
 * cloud in a box.
 *
 * Goal: every call does what it says and costs what it should; every way in which a
 * server can fail becomes the status that the engine needs to hear; a body arrives
 * byte for byte or not at all; memory is bounded; no token is ever told.
 * Method: a job per call.  In front of the cloud stands a provider that keeps the
 * last request, answers token refreshes, and can say something else than the cloud. */
#include "gmail_client_fixture.h"

int main(void)
{
    return tests_run(NULL);
}
