/* sim.h - the simulated world: the one header a test includes.
 *
 * sim_world.h  threads, locks, clock, crash and reboot, the trace
 * sim_disk.h   a disk that forgets, as a SQLite VFS and as files
 * sim_net.h    HTTP calls to a pure provider, with faults
 * sim_provider.h  a small stand-in provider that keeps a record of the truth
 *
 * A test runs on the world's main thread.  It starts something, lets time pass
 * or the plan of faults strike, takes it down, boots again, and in the end
 * switches the faults off: then everything must come to rest, and be right.
 *
 *     struct tide_sim_options options = tide_sim_options_seeded(seed);
 *     options.net.provide = tide_sim_provider_call;
 *     options.net.provide_arg = provider;
 *     options.crash_every_steps = 5000;
 *     tide_sim *sim = tide_sim_new(seed, &options);
 *     for (int life = 0; !finished; life++) {
 *         tide_sim_faults(sim, life < 20);
 *         ... open the engine with .world = tide_sim_world(sim), start it, wait;
 *         ... close it: it unwinds, whether it ended or the world died;
 *         tide_sim_reboot(sim);
 *     }
 *     ... compare what is stored with what the provider recorded
 *     tide_sim_free(sim);
 */
#ifndef TIDE_SIM_SIM_H
#define TIDE_SIM_SIM_H

#include "sim_disk.h"
#include "sim_net.h"
#include "sim_provider.h"
#include "sim_world.h"

#endif
