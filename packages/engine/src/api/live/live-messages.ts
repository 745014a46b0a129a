/**
 * Topics and messages of the live stream, `GET /ui/stream`. A message says what has changed, with the state that the
 * database had afterwards; a page then reads what else it needs. Several changes of one topic are one message.
 */
import { z } from "zod";
import { ALL_RUN_STATES, ALL_TASK_STATES } from "../../model/index.ts";
import { nullableDate } from "../server/fields.ts";

/** Entries of one message; more are in further messages, or `more` is set. */
export const MOST_ENTRIES = 500;

const runState = z.enum(ALL_RUN_STATES as [string, ...string[]]);
const taskState = z.enum(ALL_TASK_STATES as [string, ...string[]]);
const more = z.boolean().describe("More has changed than is listed: read the whole list.");

const runChange = z
  .object({
    dag_id: z.string(),
    run_id: z.string(),
    state: runState.nullable().describe("null: deleted; the other fields are then null, too."),
    run_type: z.string().nullable(),
    run_after: nullableDate,
    logical_date: nullableDate,
    start_date: nullableDate,
    end_date: nullableDate,
  })
  .meta({ id: "LiveRun" });

const taskChange = z
  .object({
    task_id: z.string(),
    map_index: z.number(),
    try_number: z.number(),
    state: taskState.nullable().describe("null: the instance no longer exists."),
    start_date: nullableDate,
    end_date: nullableDate,
  })
  .meta({ id: "LiveTask" });

const dagChange = z
  .object({
    dag_id: z.string(),
    version: z.number().nullable().describe("Number of the current version."),
    is_paused: z.boolean(),
    is_stale: z.boolean().describe("No file exports it any more."),
  })
  .meta({ id: "LiveDag" });

/** Besides states: parts of the page of a run. */
const RUN_PARTS = ["actions", "children", "deadlines"] as const;

const runMessage = z.object({
  topic: z.templateLiteral(["run:", z.string()]),
  run: runChange.nullable().describe("null: unchanged."),
  tasks: z.array(taskChange),
  more,
  parts: z
    .array(z.enum(RUN_PARTS))
    .describe(
      "actions: a user acted on the run or a task of it. children: a run that it started has changed. deadlines: one was missed.",
    ),
});

const dagMessage = z.object({
  topic: z.templateLiteral(["dag:", z.string()]),
  dag: dagChange.nullable().describe("null: unchanged."),
  is_deleted: z.boolean(),
  runs: z.array(runChange),
});

const runsMessage = z.object({ topic: z.literal("runs"), runs: z.array(runChange) });

const dagsMessage = z.object({
  topic: z.literal("dags"),
  dags: z.array(dagChange),
  deleted: z.array(z.string()).describe("Ids of deleted DAGs."),
  import_errors: z.array(z.string()).describe("Files whose error is new or has changed."),
  imported: z.array(z.string()).describe("Files whose error has gone."),
  more,
});

const signalsMessage = z.object({
  topic: z.literal("signals"),
  newest: z.number().describe("Version of the newest of them."),
  position: z.string().describe("All of them are up to this position of the log."),
  namespaces: z.record(z.string(), z.number()).describe("Number of new signals by namespace."),
});

const waitingMessage = z.object({ topic: z.literal("waiting") });

const approvalsMessage = z.object({
  topic: z.literal("approvals"),
  open: z.number().describe("At most 1,000: there may be more."),
  opened: z.array(
    z
      .object({
        id: z.number(),
        dag_id: z.string(),
        run_id: z.string(),
        task_id: z.string(),
        map_index: z.number(),
      })
      .meta({ id: "LiveApproval" }),
  ),
  closed: z.array(z.number()).describe("Ids of those that were answered, timed out or cancelled."),
});

const errorsMessage = z.object({
  topic: z.literal("errors"),
  import_errors: z.number(),
  dead_letters: z.number(),
  dead_deliveries: z.number().describe("Each number is at most 1,000: there may be more."),
});

const backfillsMessage = z.object({
  topic: z.literal("backfills"),
  backfills: z.array(
    z
      .object({
        id: z.number(),
        dag_id: z.string(),
        state: z.string(),
        total_runs: z.number(),
        handled: z.number().describe("Dates that have been reached."),
        queued: z.number(),
        running: z.number(),
        failed: z.number(),
      })
      .meta({ id: "LiveBackfill" }),
  ),
});

const assetsMessage = z.object({
  topic: z.literal("assets"),
  assets: z.array(z.string()).describe("Addresses of assets with a new event."),
  more,
});

const jobsMessage = z.object({
  topic: z.literal("jobs"),
  jobs: z.array(
    z
      .object({
        id: z.number(),
        kind: z.string(),
        name: z.string().nullable(),
        state: z.string().describe("running, stopped or dead."),
        is_alive: z.boolean().describe("false while it runs: its lease has expired."),
        is_draining: z.boolean(),
        slots: z.number().nullable(),
        free_slots: z.number(),
      })
      .meta({ id: "LiveJob" }),
  ),
});

const settingsMessage = z.object({
  topic: z.literal("settings"),
  pools: z.array(
    z.object({ name: z.string(), slots: z.number(), occupied: z.number() }).meta({ id: "LivePool" }),
  ),
  deleted_pools: z.array(z.string()),
  connections: z.array(z.string()).describe("Ids that a user created, changed or deleted."),
  variables: z.array(z.string()).describe("Keys that a user created, changed or deleted."),
});

const auditMessage = z.object({ topic: z.literal("audit") });

/** Topics whose messages change the first page. */
export const HOME_TOPICS = ["runs", "dags", "waiting", "backfills", "jobs", "settings", "errors"] as const;
const HOME_PARTS = [...HOME_TOPICS, "deadlines", "lateness"] as const;

const homeMessage = z.object({
  topic: z.literal("home"),
  parts: z
    .array(z.enum(HOME_PARTS))
    .describe("Topics that have changed. lateness: time has passed in which a run may have become late."),
});

export const liveMessage = z
  .union([
    runMessage,
    dagMessage,
    runsMessage,
    dagsMessage,
    signalsMessage,
    waitingMessage,
    approvalsMessage,
    errorsMessage,
    backfillsMessage,
    assetsMessage,
    jobsMessage,
    settingsMessage,
    auditMessage,
    homeMessage,
  ])
  .meta({ id: "LiveMessage" });

export type LiveMessage = z.output<typeof liveMessage>;
export type LiveRun = z.output<typeof runChange>;
export type LiveTask = z.output<typeof taskChange>;
export type RunPart = (typeof RUN_PARTS)[number];
export type HomePart = (typeof HOME_PARTS)[number];

/** Data of `event: open`, the first event of a stream. */
export const openEvent = z
  .object({
    stream_id: z.string().describe("For PUT /ui/stream/{stream_id}/topics."),
    topics: z.array(z.string()),
  })
  .meta({ id: "LiveOpen" });

/** Data of `event: resync`. */
export const resyncEvent = z
  .object({
    topics: z.array(z.string()).describe("Messages of these topics were lost: read their data again."),
  })
  .meta({ id: "LiveResync" });
