/* orders.c - a program's own table and Tidemark's jobs in one transaction.
 *
 * A shop takes 100 orders.  Each is a row in the shop's own table `orders` and a job that ships
 * it, and the two commit together: there is never an order without a shipment, nor a shipment
 * for an order that was not placed.  Every tenth order is refused after both were written: then
 * neither is kept.  Shipping counts in the same table, in the transaction that ends the job.
 *
 *     orders DIR                                  the ledger is DIR/state.db
 *     orders DIR --ledger postgres://...          the ledger is a database of yours
 *     orders DIR --ledger postgres://... --mine   orders are placed on a connection of our own
 *
 * Kill it anywhere and run it again. */
#include "own_table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <tidemark.h>
#include <unistd.h>

enum { ORDERS = 100, REFUSED = ORDERS / 10 };

struct shop {
    uint32_t ship;
    long long order;
};

/* ---- placing, in the ledger's transaction --------------------------------------------- */

static tide_status place(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct shop *shop = arg;
    char sql[128];
    char payload[32];
    (void)snprintf(sql, sizeof sql, "INSERT INTO orders VALUES (%lld, 0)", shop->order);
    (void)snprintf(payload, sizeof payload, "{\"order\":%lld}", shop->order);
    tide_status rc = own_sql(transaction, sql, NULL, err);
    if (rc == TIDE_OK)
        rc = tide_transaction_enqueue(
            transaction, &(struct tide_spec){.kind = shop->ship, .payload = payload}, 1, NULL, err);
    if (rc == TIDE_OK && shop->order % 10 == 0)
        return tide_error_set(err, TIDE_SUPERSEDED, "out of stock"); /* undoes both */
    return rc;
}

/* ---- placing, in a transaction of our own ----------------------------------------------- */

/* Any program that can run SQL may do this, in any language. */
static tide_status place_mine(PGconn *db, const struct shop *shop, tide_error *err)
{
    char sql[320];
    (void)snprintf(sql, sizeof sql,
                   "BEGIN; INSERT INTO orders VALUES (%lld, 0);"
                   "SELECT tidemark.add_job('ship', '{\"order\":%lld}'); %s",
                   shop->order, shop->order, shop->order % 10 == 0 ? "ROLLBACK" : "COMMIT");
    tide_status rc = on_postgres(db, sql, NULL, err);
    if (rc != TIDE_OK)
        (void)on_postgres(db, "ROLLBACK", NULL, NULL);
    return rc;
}

/* ---- shipping ---------------------------------------------------------------------------- */

static tide_status shipped(tide_transaction *transaction, void *arg, tide_error *err)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "UPDATE orders SET shipped = shipped + 1 WHERE id = %lld",
                   *(const long long *)arg);
    return own_sql(transaction, sql, NULL, err);
}

static tide_status ship(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    long long *order = tide_job_memory(job, sizeof *order); /* lives until the effect ran */
    if (order == NULL || sscanf(tide_job_payload(job).data, "{\"order\":%lld}", order) != 1)
        return tide_error_set(err, TIDE_INVALID, "not an order");
    return tide_job_effect(job, shipped, order, err);
}

/* ---- the day ------------------------------------------------------------------------------- */

static tide_status make_table(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    return own_sql(transaction,
                   "CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY, shipped bigint)",
                   NULL, err);
}

static tide_status last_order(tide_transaction *transaction, void *arg, tide_error *err)
{
    return own_sql(transaction, "SELECT coalesce(max(id), 0) FROM orders", arg, err);
}

static tide_status count_right(tide_transaction *transaction, void *arg, tide_error *err)
{
    return own_sql(transaction, "SELECT count(*) FROM orders WHERE shipped = 1", arg, err);
}

static tide_status take_orders(tide_engine *engine, uint32_t kind, PGconn *mine, tide_error *err)
{
    struct shop shop = {.ship = kind};
    tide_status rc = tide_transact(engine, make_table, NULL, err);
    if (rc == TIDE_OK)
        rc = tide_transact(engine, last_order, &shop.order, err); /* of an earlier run */
    while (rc == TIDE_OK && shop.order++ < ORDERS) {
        rc = mine != NULL ? place_mine(mine, &shop, err) : tide_transact(engine, place, &shop, err);
        if (rc == TIDE_SUPERSEDED)
            rc = TIDE_OK;
    }
    return rc;
}

/* Waits until every order is shipped.  On a shared ledger another process may have some jobs, or
 * a process that was killed: its jobs return when its lease has expired, and waiting for our own
 * says nothing about them.  Our table does. */
static tide_status wait_for_all(tide_engine *engine, long long *right_out, tide_error *err)
{
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && *right_out < ORDERS - REFUSED) {
        rc = tide_engine_wait(engine, 1000, err);
        if (rc == TIDE_OK)
            (void)usleep(20000);
        if (rc == TIDE_OK || rc == TIDE_TIMEOUT)
            rc = tide_transact(engine, count_right, right_out, err);
    }
    return rc;
}

int main(int argc, char **argv)
{
    const char *ledger = argc >= 4 && strcmp(argv[2], "--ledger") == 0 ? argv[3] : NULL;
    const bool own = argc == 5 && strcmp(argv[4], "--mine") == 0;
    if (argc < 2 || (argc > 2 && ledger == NULL) || argc > 5 || (argc == 5 && !own)) {
        (void)fprintf(stderr, "usage: orders DIR [--ledger URL [--mine]]\n");
        return 2;
    }
    struct tide_engine_options options = {.state_dir = argv[1], .ledger = ledger};
    struct tide_kind kind = {.name = "ship", .handler = ship};
    tide_engine *engine = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    uint32_t id = 0;
    long long right = 0;
    PGconn *mine = own ? PQconnectdb(ledger) : NULL;
    tide_status rc = tide_engine_open(&options, &engine, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_kind(engine, &kind, &id, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(engine, &err);
    if (rc == TIDE_OK)
        rc = take_orders(engine, id, mine, &err);
    if (rc == TIDE_OK)
        rc = wait_for_all(engine, &right, &err);
    if (rc != TIDE_OK)
        (void)fprintf(stderr, "orders: %s\n", err.text);
    (void)tide_engine_close(engine);
    PQfinish(mine);
    (void)printf("%lld of %d orders shipped once, %d refused\n", right, ORDERS - REFUSED, REFUSED);
    return rc == TIDE_OK && right == ORDERS - REFUSED ? 0 : 1;
}
