/* reload.h - settings that change while the engine runs (E11.1).
 *
 * The file is read and checked without the lock; all changes are applied together
 * under it.  A file that is refused changes nothing.
 *
 * Invariants:
 *   RLD1  after a reload every part has what tuning.h makes of the settings.
 *   RLD2  an engine whose settings have no file is never woken for one.
 */
#ifndef TIDE_ENGINE_RELOAD_H
#define TIDE_ENGINE_RELOAD_H

#include "settings/settings.h"
#include "tidemark.h"

/* Reads the file again and applies what changed (settings/settings.h has the meaning of
 * both lists).  From any thread but the writer, without the lock. */
tide_status tide_engine_reload(tide_engine *engine, bool changed_out[TIDE_SETTINGS_COUNT],
                               bool restart_out[TIDE_SETTINGS_COUNT], tide_error *err);
/* Adds threads, or removes places, until there are as many workers as wanted.  Under
 * the lock. */
void tide_reload_workers(tide_engine *engine);
/* The keeper's check whether the file changed since its last one; called by that thread only,
 * under the lock, which is dropped meanwhile.  Returns when to check again; TIDE_NEVER: no file. */
uint64_t tide_reload_look(tide_engine *engine, uint64_t now_ms);

#endif
