#include "console/store_inside.h"

/* Version 1.  SQLite keeps this text in the file, comments included, so that it explains itself to
 * a reader without Tidemark (docs/console-format.md says the same at length).  Released versions
 * are never edited; a new version is a further step. */
static const char version_1[] =
    "CREATE TABLE property (\n"
    "  -- One row: whose numbers these are.\n"
    "  site TEXT NOT NULL,          -- sc-domain:example.com or https://www.example.com/\n"
    "  made_ms INTEGER NOT NULL,\n"
    "  made_by TEXT NOT NULL\n"
    ");\n"
    "CREATE TABLE series (\n"
    "  -- What was asked for, apart from the day.\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  type TEXT NOT NULL,          -- web, image, video, news, discover, googleNews\n"
    "  dimensions TEXT NOT NULL,    -- query,page,country,device\n"
    "  UNIQUE (type, dimensions)\n"
    ");\n"
    "CREATE TABLE day (\n"
    "  -- A day of a series, there when all of its rows are.\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  series INTEGER NOT NULL REFERENCES series (id),\n"
    "  date TEXT NOT NULL,          -- 2026-09-01, Pacific time\n"
    "  final INTEGER NOT NULL,      -- 0: its numbers may still change\n"
    "  rows INTEGER NOT NULL,\n"
    "  clicks REAL,                 -- totals of the day, with the queries that are hidden\n"
    "  impressions REAL,            -- because they are rare; NULL: not asked for\n"
    "  position REAL,\n"
    "  row_clicks REAL NOT NULL,    -- what the rows sum up to\n"
    "  row_impressions REAL NOT NULL,\n"
    "  fetched_ms INTEGER NOT NULL,\n"
    "  asked INTEGER NOT NULL,      -- by which plan it was asked for: committing twice is seen\n"
    "  UNIQUE (series, date)\n"
    ");\n"
    "CREATE TABLE query (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);\n"
    "CREATE TABLE page (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);\n"
    "CREATE TABLE country (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);\n"
    "CREATE TABLE device (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);\n"
    "CREATE TABLE appearance (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);\n"
    "CREATE TABLE fact (\n"
    "  -- One row of a day; a dimension that was not asked for is NULL.\n"
    "  id INTEGER PRIMARY KEY,      -- day.id * 65536 + its place, by clicks\n"
    "  query INTEGER,\n"
    "  page INTEGER,\n"
    "  country INTEGER,\n"
    "  device INTEGER,\n"
    "  appearance INTEGER,\n"
    "  clicks REAL NOT NULL,\n"
    "  impressions REAL NOT NULL,\n"
    "  position REAL                -- NULL: discover and googleNews have none\n"
    ");\n"
    "CREATE TABLE day_sum (\n"
    "  -- The rows of a day added up by one dimension, packed, for reports over years; can\n"
    "  -- be made again from fact.  Entries of 28 bytes, little-endian: key (u32), clicks,\n"
    "  -- impressions, position * impressions (f64 each).\n"
    "  day INTEGER NOT NULL REFERENCES day (id),\n"
    "  dimension TEXT NOT NULL,\n"
    "  body BLOB NOT NULL,\n"
    "  PRIMARY KEY (day, dimension)\n"
    ");\n"
    "CREATE TABLE staged (\n"
    "  -- Pages of days that are not complete; internal.\n"
    "  series INTEGER NOT NULL,\n"
    "  date TEXT NOT NULL,\n"
    "  start_row INTEGER NOT NULL,\n"
    "  rows INTEGER NOT NULL,\n"
    "  body BLOB NOT NULL,\n"
    "  PRIMARY KEY (series, date, start_row)\n"
    ");\n"
    "CREATE VIEW analytics AS\n"
    "  -- For people: SELECT * FROM analytics WHERE date = '2026-09-01' LIMIT 20;\n"
    "  SELECT (SELECT site FROM property) AS site, day.date, series.type, query.name AS query,\n"
    "    page.name AS page, country.name AS country, device.name AS device,\n"
    "    appearance.name AS appearance, fact.clicks, fact.impressions,\n"
    "    CASE WHEN fact.impressions > 0 THEN fact.clicks / fact.impressions ELSE 0.0 END AS ctr,\n"
    "    fact.position, day.final\n"
    "  FROM day JOIN series ON series.id = day.series\n"
    "    JOIN fact ON fact.id >= day.id * 65536 AND fact.id < (day.id + 1) * 65536\n"
    "    LEFT JOIN query ON query.id = fact.query LEFT JOIN page ON page.id = fact.page\n"
    "    LEFT JOIN country ON country.id = fact.country\n"
    "    LEFT JOIN device ON device.id = fact.device\n"
    "    LEFT JOIN appearance ON appearance.id = fact.appearance;\n";

/* Version 2 counts missing rows.  Pages that were staged before are requested again. */
static const char version_2[] =
    "ALTER TABLE day ADD COLUMN missing INTEGER;\n"
    "DROP TABLE staged;\n"
    "CREATE TABLE staged (\n"
    "  -- Pages of days that are not complete; internal.\n"
    "  series INTEGER NOT NULL,\n"
    "  date TEXT NOT NULL,\n"
    "  asked INTEGER NOT NULL,      -- by which plan\n"
    "  reading INTEGER NOT NULL,    -- 0, then one more each time the day is read again\n"
    "  start_row INTEGER NOT NULL,\n"
    "  rows INTEGER NOT NULL,\n"
    "  body BLOB NOT NULL,\n"
    "  PRIMARY KEY (series, date, asked, reading, start_row)\n"
    ");\n";

static const char *const steps[] = {version_1, version_2};

/* "tisc" in ASCII. */
const struct tide_schema tide_console_schema = {
    .what = "search analytics",
    .application_id = 0x74697363,
    .steps = steps,
    .steps_count = sizeof steps / sizeof steps[0],
};

const char tide_console_sql_days_1[] =
    "SELECT date, final, rows, clicks, impressions, position, row_clicks, row_impressions,"
    " fetched_ms, NULL FROM day WHERE series = ?1 AND date >= ?2 AND date <= ?3 ORDER BY date";

const char *const tide_console_sql[TIDE_CONSOLE_SQL] = {
    [TIDE_CONSOLE_SERIES_FIND] = "SELECT id FROM series WHERE type = ?1 AND dimensions = ?2",
    [TIDE_CONSOLE_SERIES_LIST] =
        "SELECT type, dimensions, (SELECT count(*) FROM day WHERE series = series.id),"
        " (SELECT coalesce(sum(rows), 0) FROM day WHERE series = series.id) FROM series"
        " ORDER BY id",
    [TIDE_CONSOLE_DAYS] =
        "SELECT date, final, rows, clicks, impressions, position, row_clicks, row_impressions,"
        " fetched_ms, missing FROM day WHERE series = ?1 AND date >= ?2 AND date <= ?3"
        " ORDER BY date",
    [TIDE_CONSOLE_DAY_FIND] = "SELECT id, asked, rows, final, missing FROM day WHERE series = ?1"
                              " AND date = ?2",
    [TIDE_CONSOLE_SUMS] = "SELECT day_sum.body FROM day JOIN day_sum ON day_sum.day = day.id"
                          " AND day_sum.dimension = ?4 WHERE series = ?1 AND date >= ?2"
                          " AND date <= ?3",
    [TIDE_CONSOLE_SERIES_ADD] = "INSERT INTO series(type, dimensions) VALUES(?1, ?2)",
    [TIDE_CONSOLE_DAY_PUT] =
        "INSERT INTO day(series, date, final, rows, clicks, impressions, position, row_clicks,"
        " row_impressions, fetched_ms, asked, missing)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        " ON CONFLICT(series, date) DO UPDATE SET final = ?3, rows = ?4, clicks = ?5,"
        " impressions = ?6, position = ?7, row_clicks = ?8, row_impressions = ?9,"
        " fetched_ms = ?10, asked = ?11, missing = ?12",
    [TIDE_CONSOLE_FACTS_REMOVE] = "DELETE FROM fact WHERE id >= ?1 AND id < ?2",
    [TIDE_CONSOLE_FACT_ADD] =
        "INSERT INTO fact(id, query, page, country, device, appearance, clicks, impressions,"
        " position) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [TIDE_CONSOLE_SUM_PUT] =
        "INSERT OR REPLACE INTO day_sum(day, dimension, body) VALUES(?1, ?2, ?3)",
    [TIDE_CONSOLE_STAGE] =
        "INSERT OR REPLACE INTO staged(series, date, asked, reading, start_row, rows, body)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [TIDE_CONSOLE_STAGED] = "SELECT reading, start_row, body FROM staged WHERE series = ?1"
                            " AND date = ?2 AND asked = ?3 AND reading >= ?4"
                            " ORDER BY reading, start_row",
    [TIDE_CONSOLE_STAGED_ROWS] = "SELECT reading, start_row, rows FROM staged WHERE series = ?1"
                                 " AND date = ?2 AND asked = ?3 ORDER BY reading, start_row",
    [TIDE_CONSOLE_UNSTAGE_READINGS] = "DELETE FROM staged WHERE series = ?1 AND date = ?2"
                                      " AND asked = ?3 AND reading < ?4",
    [TIDE_CONSOLE_UNSTAGE] = "DELETE FROM staged WHERE series = ?1 AND date = ?2",
    [TIDE_CONSOLE_NAME_FIND + 0] = "SELECT id FROM query WHERE name = ?1",
    [TIDE_CONSOLE_NAME_FIND + 1] = "SELECT id FROM page WHERE name = ?1",
    [TIDE_CONSOLE_NAME_FIND + 2] = "SELECT id FROM country WHERE name = ?1",
    [TIDE_CONSOLE_NAME_FIND + 3] = "SELECT id FROM device WHERE name = ?1",
    [TIDE_CONSOLE_NAME_FIND + 4] = "SELECT id FROM appearance WHERE name = ?1",
    [TIDE_CONSOLE_NAME_ADD + 0] = "INSERT INTO query(name) VALUES(?1)",
    [TIDE_CONSOLE_NAME_ADD + 1] = "INSERT INTO page(name) VALUES(?1)",
    [TIDE_CONSOLE_NAME_ADD + 2] = "INSERT INTO country(name) VALUES(?1)",
    [TIDE_CONSOLE_NAME_ADD + 3] = "INSERT INTO device(name) VALUES(?1)",
    [TIDE_CONSOLE_NAME_ADD + 4] = "INSERT INTO appearance(name) VALUES(?1)",
    [TIDE_CONSOLE_NAME_OF + 0] = "SELECT name FROM query WHERE id = ?1",
    [TIDE_CONSOLE_NAME_OF + 1] = "SELECT name FROM page WHERE id = ?1",
    [TIDE_CONSOLE_NAME_OF + 2] = "SELECT name FROM country WHERE id = ?1",
    [TIDE_CONSOLE_NAME_OF + 3] = "SELECT name FROM device WHERE id = ?1",
    [TIDE_CONSOLE_NAME_OF + 4] = "SELECT name FROM appearance WHERE id = ?1",
};
