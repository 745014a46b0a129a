/**
 * One history of a real run: random edits through the store while a scheduler drives the run, then no failures until it has
 * succeeded. The executions come from the ledger file that the tasks write, the edits from the rows before and after each
 * edit. Both are checked against the success rule.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import type { DagManifest } from "@tradewind/sdk/manifest";
import { isFinished, OCCUPYING, type TaskState } from "../../src/model/index.ts";
import { adhoc, type Connection } from "../../src/store/database/database.ts";
import { submitManualCommand } from "../../src/store/drive/manual-commands.ts";
import { clearTasks } from "../../src/store/edit/clear-tasks.ts";
import { cancelRun, markRun } from "../../src/store/edit/end-run.ts";
import { markTasks } from "../../src/store/edit/mark-tasks.ts";
import { sendSignals } from "../../src/store/signal/signals.ts";
import type { SchedulerRig } from "../support/scheduler-rig.ts";
import { type EditedDag, STARTED } from "./edited-dags.ts";
import { type Random, randomOf } from "./random-dag.ts";
import { keyOf } from "./reference-shape.ts";
import { StartDemands } from "./start-demands.ts";
import { type EndedInstance, Ledger, unmetDemands } from "./success-rule.ts";

interface Row {
  readonly task_id: string;
  readonly map_index: number;
  readonly state: TaskState;
  readonly try_number: number;
  readonly reason: string | null;
}

/** A line of the ledger file, or a run of the sub-DAG. */
interface Line {
  readonly run: string;
  readonly task: string;
  readonly index: number;
  readonly try: number;
  readonly what: "begin" | "success" | "failed" | "skipped";
  readonly at: number;
  /** The length of a list. */
  readonly length?: number;
}

interface Seen {
  readonly at: number;
  readonly tryNumber: number;
  readonly isCutShort: boolean;
  readonly isOut: boolean;
}

interface Fact {
  readonly at: number;
  readonly apply: (ledger: Ledger) => void;
}

const EDITS = [
  "cancel",
  "markRun",
  "markTasks",
  "clear",
  "clearFailed",
  "clearDownstream",
  "clearGroup",
] as const;

/** The tasks of the group and of the mapped group. */
const GROUPS = [
  ["first", "second"],
  ["one", "two"],
] as const;

type Edit = (typeof EDITS)[number] | (typeof REMEDIES)[number];

/** A calm run succeeds after these edits. Several may be needed: a marked task has no output, so tasks that read it fail. */
const REMEDIES = ["clearFailed", "clearFailed", "clearAll", "queue"] as const;

export class EditedHistory {
  readonly #rig: SchedulerRig;
  readonly #dag: EditedDag;
  readonly #random: Random;
  readonly #name: string;
  /** Descriptions of the edits, for the error message. */
  readonly #edits: string[] = [];
  readonly #facts: Fact[] = [];
  /** By instance: its state at each edit, and whether the edit interrupted it. */
  readonly #seen = new Map<string, Seen[]>();
  #id = 0;
  #manifest!: DagManifest;
  readonly #starts: StartDemands;

  /** @param retry The retry count of the test: each retry needs its own run ids. */
  constructor(rig: SchedulerRig, dag: EditedDag, seed: number, retry = 0) {
    this.#rig = rig;
    this.#dag = dag;
    this.#random = randomOf(seed ^ 0x2545f491);
    this.#name = retry === 0 ? `history-${seed}` : `history-${seed}-retry-${retry}`;
    this.#starts = new StartDemands((task, since) => this.#hasBegun(task, since));
  }

  get editCount(): number {
    return this.#edits.length;
  }

  /** Rejects with a description of the history. */
  async live(edits: number): Promise<void> {
    try {
      await this.#live(edits);
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${await this.#story()}`, { cause: error });
    }
  }

  async #live(edits: number): Promise<void> {
    this.#id = await this.#rig.trigger(this.#dag.dagId, { runId: this.#name });
    const sql = "SELECT v.manifest FROM dag_run r JOIN dag_version v ON v.id = r.version_id WHERE r.id = $1";
    this.#manifest = (await this.#rig.db.one<{ manifest: DagManifest }>(adhoc(sql), [this.#id]))!.manifest;
    for (let n = 0; n < edits; n++) {
      await this.#moment();
      if (this.#dag.isDriven && this.#random.chance(0.6)) await this.#start();
      if (this.#dag.isDriven && this.#random.chance(0.15)) await this.#stop();
      await this.#edit(this.#random.one(EDITS));
    }
    writeFileSync(`${this.#rig.root}/calm-${this.#name}`, "");
    let state = await this.#ended();
    for (const kind of REMEDIES) {
      if (state === "success") break;
      await this.#edit(kind);
      state = await this.#ended();
    }
    assert.equal(state, "success", "the run does not succeed after all remedies");
    // A run that a user marked has the state that the user chose.
    if ((await this.#rig.run(this.#id)).end_reason === null)
      assert.deepEqual(await this.#unmet(), [], "unmet demands of a successful run");
  }

  /** Waits for a random number of ledger lines, or until the run is idle. */
  async #moment(): Promise<void> {
    const lines = this.#lines().length + this.#random.below(7);
    await this.#rig.until(
      async () => this.#lines().length >= lines || (await this.#isIdle()),
      `${lines} lines of ${this.#name}`,
    );
  }

  /** The run has ended, or only a signal can continue it. */
  async #isIdle(): Promise<boolean> {
    const { state } = await this.#rig.run(this.#id);
    if (state === "success" || state === "failed") return true;
    const rows = await this.#rows(this.#rig.db);
    return rows.length > 0 && rows.every((row) => isFinished(row.state) || this.#isWaiting(row, rows));
  }

  /** Only a signal can move the task. */
  #isWaiting({ state, task_id: task }: Row, rows: readonly Row[]): boolean {
    if (task === "stream") return state === "running";
    const isSignalAwaited = rows.some((row) => row.task_id === "sig" && row.state === "pending");
    if (state !== "pending") return false;
    if (task === "sig") return !this.#starts.isPending(task);
    if (task === "last_sig") return isSignalAwaited || !this.#starts.isPending(task);
    return task === "after_sig" && isSignalAwaited;
  }

  #hasBegun(task: string, since: number): boolean {
    return this.#lines().some((line) => line.task === task && line.what === "begin" && line.at >= since);
  }

  async #ended(): Promise<string> {
    // Only once: each manual command makes the owner read the run again.
    let isClosed = false;
    await this.#rig.until(async () => {
      const { state } = await this.#rig.run(this.#id);
      if (state === "success" || state === "failed") return true;
      if (this.#dag.isDriven && !isClosed && (await this.#isIdle())) {
        isClosed = true;
        await this.#close();
      }
      return false;
    }, `end of ${this.#name}`);
    return (await this.#rig.run(this.#id)).state;
  }

  /** Sends the start signal, and returns when the run has received it. */
  async #start(): Promise<void> {
    const since = performance.timeOrigin + performance.now();
    const before = await this.#firings();
    await this.#signal(this.#dag.signal);
    await this.#rig.until(
      async () => (await this.#firings()) > before || isOver((await this.#rig.run(this.#id)).state),
      `signal received by ${this.#name}`,
    );
    // A run that ended meanwhile receives signals again only after an edit.
    if (isOver((await this.#rig.run(this.#id)).state)) return;
    for (const task of STARTED) this.#starts.add(task, since);
  }

  async #stop(): Promise<void> {
    this.#starts.forget("sig");
    await this.#signal(this.#dag.stopSignal);
  }

  /** How often the rules that start tasks have fired. */
  async #firings(): Promise<number> {
    const sql = `SELECT coalesce(sum((rule->'state'->>'fired')::int), 0)::int AS fired
      FROM run_drive d, jsonb_array_elements(coalesce(d.state::jsonb->'rules', '[]')) AS rule
      WHERE d.dag_run_id = $1 AND rule->>'taskId' = ANY($2) AND rule->>'ruleIndex' = '0'`;
    return (await this.#rig.db.one<{ fired: number }>(adhoc(sql), [this.#id, STARTED]))!.fired;
  }

  async #signal(key: string): Promise<void> {
    await sendSignals(this.#rig.db, [{ namespace: "default", key, value: null, sender: "test" }]);
    this.#rig.wakeUps.send("signals");
  }

  async #close(): Promise<void> {
    for (const row of await this.#rows(this.#rig.db))
      if (row.state === "pending") this.#starts.forget(row.task_id);
    const order = {
      dagId: this.#dag.dagId,
      runId: this.#name,
      user: "Ann",
      taskId: null,
      action: "stop",
    } as const;
    await this.#rig.db.transaction((tx) => submitManualCommand(tx, order));
    this.#rig.wakeUps.send(`run:${this.#id}`);
  }

  async #edit(kind: Edit): Promise<void> {
    await this.#rig.db.transaction(async (tx) => {
      // The lock that the edit takes, too: nothing changes until the edit is done.
      await tx.rows(adhoc("SELECT 1 FROM dag_run WHERE id = $1 FOR UPDATE"), [this.#id]);
      const at = performance.timeOrigin + performance.now();
      const before = await this.#rows(tx);
      const named = await this.#apply(tx, kind);
      const isEnded = isOver((await tx.one<{ state: string }>(adhoc(RUN_STATE), [this.#id]))!.state);
      const after = await this.#rows(tx);
      this.#record(at, before, after, { kind, named });
      for (const row of after) {
        const former = before.find((each) => nameOf(each) === nameOf(row))!;
        if (named(row)) this.#starts.forget(row.task_id);
        else if (isEnded || kind === "cancel" || kind === "markRun") this.#starts.endRun(former, row);
      }
    });
    this.#rig.wakeUps.send("runs");
    this.#rig.wakeUps.send(`run:${this.#id}`);
  }

  /** Returns a predicate for the tasks whose state the edit has set. */
  async #apply(tx: Connection, kind: Edit): Promise<(row: Row) => boolean> {
    const id = this.#id;
    const clear = (only: "any" | "failed", tasks: readonly string[] | null) =>
      clearTasks(tx, {
        runs: [{ dagRunId: id, tasks: tasks?.map((taskId) => ({ taskId, mapIndex: null })) ?? null }],
        ...{ only, resetRuns: true, latestVersion: false, refuseRunning: false, dryRun: false },
      });
    const some = this.#manifest.tasks.map(({ taskId }) => taskId).filter(() => this.#random.chance(0.25));
    switch (kind) {
      case "cancel":
        await cancelRun(tx, id, "cancelled by a test");
        // Active tasks fail; tasks that had not begun are still demanded.
        return ({ state }) => state === "failed";
      case "markRun": {
        const state = this.#random.one(["success", "failed", "queued"] as const);
        await markRun(tx, id, state);
        return (row) => state === "success" || (state === "failed" && row.state === "failed");
      }
      case "markTasks": {
        const state = this.#random.one(["success", "failed", "skipped"] as const);
        const tasks = some.map((taskId) => ({ taskId, mapIndex: null }));
        await markTasks(tx, { runs: [{ dagRunId: id, tasks }], state, dryRun: false });
        return (row) => some.includes(row.task_id) && row.state === state;
      }
      case "clear":
        await clear("any", this.#random.chance(0.2) ? null : some);
        break;
      case "clearFailed":
        await clear("failed", null);
        break;
      case "clearAll":
        await clear("any", null);
        break;
      case "queue":
        await markRun(tx, id, "queued");
        break;
      case "clearDownstream":
        await clear("any", this.#withDownstream(some.slice(0, 1)));
        break;
      case "clearGroup":
        await clear(
          "any",
          this.#random.one(GROUPS).map((name) => this.#taskNamed(name)),
        );
    }
    return () => false;
  }

  #taskNamed(name: string): string {
    return this.#manifest.tasks.find(({ taskId }) => taskId === name || taskId.endsWith(`.${name}`))!.taskId;
  }

  #withDownstream(tasks: readonly string[]): string[] {
    const found = new Set(tasks);
    for (let before = -1; before !== found.size; ) {
      before = found.size;
      for (const { taskId, upstream } of this.#manifest.tasks)
        if (upstream.some((id) => found.has(id))) found.add(taskId);
    }
    return [...found];
  }

  #record(
    at: number,
    before: readonly Row[],
    after: readonly Row[],
    { kind, named }: { readonly kind: string; readonly named: (row: Row) => boolean },
  ): void {
    const changes: string[] = [];
    for (const row of after) {
      const former = before.find((each) => nameOf(each) === nameOf(row));
      const hasChanged = former?.state !== row.state;
      const key = this.#keyOf(row.task_id, row.map_index);
      if (hasChanged) changes.push(`${key} ${former?.state} ${row.state}`);
      if (named(row) && (hasChanged || kind === "markTasks"))
        this.#facts.push({ at, apply: (ledger) => ledger.mark(key, row.state) });
      if (hasChanged && (row.state === "pending" || row.state === "restarting"))
        this.#facts.push({ at, apply: (ledger) => ledger.clear(key) });
      const seen = { at, tryNumber: row.try_number, isCutShort: hasChanged, isOut: OCCUPYING.has(row.state) };
      this.#seen.set(key, [...(this.#seen.get(key) ?? []), seen]);
    }
    this.#edits.push(`${kind}: ${changes.join(", ")}`);
  }

  async #unmet(): Promise<string[]> {
    const ledger = new Ledger();
    const lines = [...this.#lines(), ...(await this.#childLines())];
    const facts = [...this.#facts];
    for (const { at, index, task, try: tryNumber, what } of lines) {
      const key = this.#keyOf(task, index);
      const edits = this.#seen.get(key)?.filter((each) => each.tryNumber >= tryNumber && each.at < at) ?? [];
      // Reports of an interrupted attempt do not count.
      if (edits.some(({ isCutShort }) => isCutShort)) continue;
      // The engine had started the attempt before its process wrote the line.
      const isLate = what === "begin" ? edits.find(({ isOut }) => isOut) : undefined;
      const tell = (to: Ledger) => (what === "begin" ? to.begin(key) : to.end(key, what));
      facts.push({ at: isLate ? isLate.at - 0.001 : at, apply: tell });
    }
    for (const { apply: tell } of facts.sort((a, b) => a.at - b.at)) tell(ledger);
    const rows = await this.#rows(this.#rig.db);
    const length = lines.findLast(({ task, what }) => task === "list" && what === "success")?.length;
    const list = ledger.of({ taskId: "list", path: [] });
    // A list task that a user marked has no output.
    const hasNoItems = length === 0 || list.marked > list.ended;
    const ended = rows.map((row): EndedInstance => {
      const path = this.#pathOf(row.task_id, row.map_index);
      const isListEnd = this.#isMapped(row.task_id) && path.length === 0 && hasNoItems;
      return { taskId: row.task_id, path, state: row.state, skip: [], isListEnd };
    });
    const isUndemanded = (taskId: string) => {
      const { reason, state } = rows.find((row) => row.task_id === taskId)!;
      if (reason?.startsWith("stopped by ")) return true;
      if (taskId === "stream")
        return state === "skipped" && reason?.startsWith("the run was closed by") === true;
      return (
        STARTED.some((id) => id === taskId) && !this.#hasBegun(taskId, 0) && !this.#starts.isPending(taskId)
      );
    };
    return [
      ...unmetDemands(this.#manifest, ended, ledger, isUndemanded),
      ...this.#wrongLength(rows, ledger, length),
    ];
  }

  /** A map whose instances all began after its list was created has as many items as the list. */
  #wrongLength(rows: readonly Row[], ledger: Ledger, length: number | undefined): string[] {
    const made = ledger.of({ taskId: "list", path: [] }).ended;
    return (this.#manifest.maps ?? []).flatMap(({ mapId }) => {
      const tasks = this.#manifest.tasks.filter(({ map }) => map === mapId).map(({ taskId }) => taskId);
      const each = rows.filter(({ map_index, task_id }) => tasks.includes(task_id) && map_index >= 0);
      const isNew = each.every(
        (row) => ledger.of({ taskId: row.task_id, path: [row.map_index] }).begun > made,
      );
      // A task that was marked before its map was expanded has no items.
      const lengths = isNew ? tasks.map((id) => each.filter(({ task_id }) => task_id === id).length) : [];
      return lengths
        .filter((items) => items > 0 && items !== length)
        .map((items) => `${mapId} has ${items} of ${length} items`);
    });
  }

  #lines(): Line[] {
    let text = "";
    try {
      text = readFileSync(`${this.#rig.root}/ledger`, "utf8");
    } catch {}
    const own = text.split("\n").filter((line) => line.includes(`"${this.#name}"`));
    return own.map((line) => JSON.parse(line) as Line);
  }

  /** Lines for the sub-DAG, which has a run for each try of its task. */
  async #childLines(): Promise<Line[]> {
    const children = await this.#rig.db.rows<{
      readonly parent_try: number;
      readonly state: "success" | "failed";
      readonly queued_at: Date;
      readonly ended_at: Date | null;
    }>(adhoc("SELECT * FROM dag_run WHERE parent_run_id = $1 AND parent_try IS NOT NULL"), [this.#id]);
    return children.flatMap(({ ended_at, parent_try, queued_at, state }) => {
      const facts = { run: this.#name, task: "sub", index: -1, try: parent_try };
      const begun = { ...facts, what: "begin" as const, at: queued_at.getTime() };
      return ended_at ? [begun, { ...facts, what: state, at: ended_at.getTime() }] : [begun];
    });
  }

  #rows(db: Connection): Promise<Row[]> {
    const sql =
      "SELECT task_id, map_index, state, try_number, reason FROM task_instance WHERE dag_run_id = $1 ORDER BY 1, 2";
    return db.rows<Row>(adhoc(sql), [this.#id]);
  }

  #isMapped(taskId: string): boolean {
    return this.#manifest.tasks.some((task) => task.taskId === taskId && task.map);
  }

  #pathOf(taskId: string, mapIndex: number): number[] {
    return this.#isMapped(taskId) && mapIndex >= 0 ? [mapIndex] : [];
  }

  #keyOf(taskId: string, mapIndex: number): string {
    return keyOf(taskId, this.#pathOf(taskId, mapIndex));
  }

  async #story(): Promise<string> {
    const rows = await this.#rows(this.#rig.db);
    const states = rows.map(
      (row) => `${this.#keyOf(row.task_id, row.map_index)} ${row.state} ${row.try_number}`,
    );
    const lines = this.#lines().map(
      (line) => `${this.#keyOf(line.task, line.index)} ${line.what} ${line.try}`,
    );
    return [this.#name, this.#dag.source, ...this.#edits, lines.join(", "), states.join(", ")].join("\n");
  }
}

const RUN_STATE = "SELECT state FROM dag_run WHERE id = $1";

function isOver(state: string): boolean {
  return state === "success" || state === "failed";
}

function nameOf({ map_index, task_id }: Row): string {
  return `${task_id} ${map_index}`;
}
