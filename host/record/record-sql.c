/* SPDX-License-Identifier: Apache-2.0 */
/* record-sql.c: every statement of the record that is prepared once and kept. */
#include "record/record-private.h"

const char *const RECORD_SQL[STATEMENT_COUNT] = {
    [STATEMENT_HOLDS] = "SELECT 1 FROM lives JOIN runs ON runs.number = lives.run"
                        "  WHERE runs.run_id = ?1 AND lives.owner = ?2",
    [STATEMENT_INSERT_LIFE] =
        "INSERT INTO lives (run, owner, attempt, lease, heartbeat_at, request)"
        "  SELECT number, ?2, 1, ?3, ?4, ?5 FROM runs WHERE run_id = ?1",
    /* IMMEDIATE: a transaction that reads first and then finds that another has written would
     * have to fail. */
    [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
    [STATEMENT_BEGIN_READ] = "BEGIN",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_INSERT_RUN] =
        "INSERT INTO runs (run_id, trace_id, status, created_at, header, owner_pid, owner_start,"
        "                  owner_boot, owner_namespace, number, keep_days)"
        "  VALUES (?1, ?2, 'running', ?3, ?4, ?5, ?6, ?7, ?8, ?9, nullif(?10, 0))",
    [STATEMENT_INSERT_EVENT] = "INSERT INTO events (run, seq, at, type, metadata, payload, hash)"
                               "  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    /* A number is never used twice, also when its run is pruned. */
    [STATEMENT_LAST_LINK] =
        "SELECT max(last, coalesce((SELECT max(number) FROM runs), 0)), link FROM record_chain",
    [STATEMENT_MOVE_LINK] = "UPDATE record_chain SET last = ?1, link = ?2",
    [STATEMENT_INSERT_CHAIN] = "INSERT INTO chains (run, link, count, head) VALUES (?1, ?2, 0, ?2)",
    [STATEMENT_CHAIN] =
        "SELECT number,"
        "       coalesce(count, (SELECT max(seq) FROM events WHERE events.run = number), 0),"
        "       head, chains.run IS NOT NULL"
        "  FROM runs LEFT JOIN chains ON chains.run = number WHERE run_id = ?1",
    [STATEMENT_MOVE_HEAD] = "UPDATE chains SET count = ?2, head = ?3 WHERE run = ?1",
    /* A run taken for dead may turn out to have lived: then its own word counts. */
    [STATEMENT_END_RUN] = "UPDATE runs SET status = ?2, ended_at = ?3"
                          "  WHERE run_id = ?1 AND status IN ('running', ?4)",
    [STATEMENT_RUN_STATUS] = "SELECT status FROM runs WHERE run_id = ?1",
    [STATEMENT_RUNNING] = "SELECT run_id, owner_pid, owner_start, owner_boot, owner_namespace"
                          "  FROM runs WHERE status = 'running'",
    [STATEMENT_NEWEST] = "SELECT run_id FROM runs ORDER BY number DESC LIMIT 1",
    /* char(1114111) is the last character there is. */
    [STATEMENT_PREFIX] = "SELECT run_id FROM runs"
                         "  WHERE run_id >= ?1 AND run_id <= ?1 || char(1114111)"
                         "  ORDER BY run_id = ?1 DESC, run_id LIMIT 3",
    [STATEMENT_RUN] = "SELECT run_id, trace_id, status, created_at, ended_at, header, number"
                      "  FROM runs WHERE run_id = ?1",
    [STATEMENT_EVENTS] = "SELECT seq, at, type, metadata, payload FROM events WHERE run = ?1"
                         "  ORDER BY seq",
    /* Metadata is written compact, and a quote within a text is escaped: these characters are
     * that key. */
    [STATEMENT_RUNS] =
        "SELECT run_id, trace_id, status, created_at, ended_at, header,"
        "       (SELECT count(*) FROM events WHERE run = runs.number"
        "          AND type = 'sandbox_exec_started'"
        "          AND instr(coalesce(metadata, ''), '\"purpose\":\"workspace_sync\"') = 0)"
        "  FROM runs WHERE (?1 IS NULL OR status = ?1) AND (?2 = 0 OR created_at >= ?2)"
        "    AND (?3 IS NULL OR instr(header, ?3) > 0) ORDER BY number DESC",
    [STATEMENT_INSERT_OUTPUT] = "INSERT INTO outputs (run, execution_id, stream)"
                                "  SELECT number, ?2, ?3 FROM runs WHERE run_id = ?1",
    [STATEMENT_INSERT_CHUNK] =
        "INSERT INTO output_chunks (output, start, length, data) VALUES (?1, ?2, ?3, ?4)",
    [STATEMENT_OUTPUT] =
        "SELECT number FROM outputs WHERE run = ?1 AND execution_id = ?2 AND stream = ?3",
    [STATEMENT_OUTPUT_END] = "SELECT start + length FROM output_chunks WHERE output = ?1"
                             "  ORDER BY start DESC LIMIT 1",
    [STATEMENT_EXECUTIONS] =
        "SELECT seq, type, metadata FROM events WHERE run = ?1 AND type IN"
        "  ('sandbox_exec_started', 'sandbox_exec_completed', 'sandbox_exec_failed',"
        "   'sandbox_output_sealed') ORDER BY seq",
    [STATEMENT_PAYLOAD] = "SELECT payload FROM events WHERE run = ?1 AND seq = ?2",
    [STATEMENT_VERIFY_RUN] =
        "SELECT number, status, created_at, run_id, trace_id, header, c.link, c.count, c.head,"
        "       number >= (SELECT first FROM record_chain),"
        "       CASE WHEN number = (SELECT first FROM record_chain) THEN zeroblob(32) ELSE "
        "coalesce("
        "         (SELECT link FROM chains WHERE run = number - 1),"
        "         (SELECT link FROM pruned WHERE pruned.number = runs.number - 1)) END, ended_at,"
        "       (SELECT attempt FROM lives WHERE run = number)"
        "  FROM runs LEFT JOIN chains c ON c.run = number WHERE run_id = ?1",
    [STATEMENT_VERIFY_EVENTS] =
        "SELECT seq, at, type, metadata, payload, hash FROM events WHERE run = ?1 ORDER BY seq",
    [STATEMENT_VERIFY_OUTPUTS] =
        "SELECT execution_id, stream,"
        "       (SELECT count(*) FROM output_chunks WHERE output = outputs.number)"
        "  FROM outputs WHERE run = ?1 ORDER BY number",
    [STATEMENT_ANCHOR] = "SELECT first, last, link FROM record_chain",
    [STATEMENT_NUMBERS] =
        "SELECT number, run_id, 0, (SELECT link FROM chains WHERE run = number) FROM runs"
        " UNION ALL SELECT number, run_id, 1, link FROM pruned ORDER BY 1",
    [STATEMENT_ORPHANS] =
        "SELECT DISTINCT run FROM events WHERE run NOT IN (SELECT number FROM runs)"
        "  AND run NOT IN (SELECT run FROM discarded JOIN pruned ON number = run)",
    /* The second column: pieces of no output. */
    [STATEMENT_STRAYS] =
        "SELECT number, 0 FROM outputs WHERE run NOT IN (SELECT number FROM runs)"
        "  AND run NOT IN (SELECT run FROM discarded JOIN pruned ON pruned.number = run)"
        " UNION SELECT output, 1 FROM output_chunks"
        "  WHERE output NOT IN (SELECT number FROM outputs)",
    [STATEMENT_CHUNK] = "SELECT start, length, data FROM output_chunks"
                        "  WHERE output = ?1 AND start <= ?2 ORDER BY start DESC LIMIT 1",
    /* By when it ended, or began; never one that runs or waits, nor one of the newest ?1. */
    [STATEMENT_PRUNABLE] =
        "SELECT number, run_id, coalesce(ended_at, created_at) FROM runs"
        "  WHERE status NOT IN (" RECORD_UNPRUNABLE ")"
        "    AND number <= (SELECT number FROM runs ORDER BY number DESC LIMIT 1 OFFSET ?1)"
        "  ORDER BY number",
    [STATEMENT_INSERT_PRUNED] =
        "INSERT INTO pruned (number, run_id, status, created_at, pruned_at, link, count, head)"
        "  SELECT number, run_id, status, created_at, ?2, c.link, c.count, c.head"
        "  FROM runs LEFT JOIN chains c ON c.run = number"
        "  WHERE number = ?1 AND status NOT IN (" RECORD_UNPRUNABLE ")",
};
