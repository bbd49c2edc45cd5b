/* tidemark_inside.h - what Tidemark's own systems need of the engine and other programs do
 * not.  Not installed. */
#ifndef TIDEMARK_INSIDE_H
#define TIDEMARK_INSIDE_H

#include "tidemark.h"

struct tide_cancel;

/* A job's cancellation as a token, for what waits on its behalf; borrowed. */
const struct tide_cancel *tide_job_cancellation(const tide_job *job);

#endif
