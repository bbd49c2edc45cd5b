#include "engine/engine.h"
/* replaced below */
struct tide_control;
tide_status tide_control_start(tide_engine *engine, tide_error *err)
{
    (void)engine;
    (void)err;
    return TIDE_OK;
}
void tide_control_stop(tide_engine *engine)
{
    (void)engine;
}
