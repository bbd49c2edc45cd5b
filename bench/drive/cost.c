/* cost.c - cost LOG PROGRAM ARGUMENT...: runs a program with its output in LOG and prints what it took:
 * "WALL_S CPU_S PEAK_MB". */
#include "../bench.h"

int main(int argc, char **argv)
{
    expect(argc >= 3, "give LOG PROGRAM ARGUMENT...");
    const struct cost cost = run_program((const char *const *)(argv + 2), argv[1]);
    (void)printf("%.3f %.3f %.1f\n", cost.wall_s, cost.cpu_s, cost.rss_mb);
    return 0;
}
