/* sim.h - the simulated world: the one header a test includes.
 *
 * sim_world.h  threads, locks, clock, crash and reboot, the trace
 * sim_disk.h   a disk that forgets, as a SQLite VFS and as files
 * sim_net.h    HTTP calls to a pure provider, with faults
 * sim_provider.h  a small stand-in provider that keeps a record of the truth
 */
#ifndef TIDE_SIM_SIM_H
#define TIDE_SIM_SIM_H

#include "sim_disk.h"
#include "sim_net.h"
#include "sim_provider.h"
#include "sim_world.h"

#endif
