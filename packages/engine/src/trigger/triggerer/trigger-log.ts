/**
 * Writes the output of triggers to the logs of the tasks that wait for them, while they wait. A trigger's lines go to a
 * separate file beside the file of the attempt that deferred; readers merge the files of a try.
 *
 * A shared trigger writes to the first 50 logs; the others refer to one of these. Everything here happens in the
 * background and in order, with a bounded number of open files: a failed write affects nothing else, and a trigger that
 * writes faster than the disk loses lines, which its log reports.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";
import { AttemptLog } from "../../log/attempt-log.ts";
import type { LogWriter } from "../../log/log-writer.ts";
import type { SecretMask } from "../../secret/mask.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import type { FiredWait } from "../../store/trigger/trigger-fire.ts";
import { dagsOfRuns, type Subscriber, subscribersOf, waitEndsOf } from "../../store/trigger/triggers.ts";
import type { IgnoredAbort } from "../contract.ts";

export interface TriggerLogOptions {
  readonly database: Database;
  readonly logs: LogWriter;
  readonly mask: SecretMask;
  readonly logger: Logger;
  readonly maxOpenFiles?: number;
  readonly maxBytes?: number;
  /** A trigger that has run this long without a log line is announced. */
  readonly announceAfterMs?: number;
}

const HEARD_BY = 50;
const GATHER_MS = 100;
/** Announcements per batch: many triggers claimed at once must not keep the disk busy. */
const ANNOUNCED_AT_ONCE = 50;
const MAX_WAITING_LINES = 1_000;
const MAX_ANNOUNCED = 10_000;
const MAX_TOLD = 2 * MAX_ANNOUNCED;
const CLOSED_AT_ONCE = 32;
/** Ended triggers whose logs still accept lines. */
const MAX_ENDED = 100;
/** Tasks named in one line of the engine's log. */
const MAX_NAMED = 5;

interface Said {
  readonly level: LogLevel;
  readonly message: string;
  readonly time: number;
  /** Absent for the engine's own lines. */
  readonly fields?: Readonly<Record<string, Json>> | undefined;
  readonly byEngine: boolean;
}

/** The location of a wait's log. */
type Place = Omit<Subscriber, "trigger_id">;

interface Topic {
  readonly id: number;
  readonly what: string;
  readonly announceAt: number;
  lines: Said[];
  lost: number;
  isAnnounced: boolean;
  /** Attempts whose log has the opening line, and whether they also receive the trigger's lines. */
  readonly logged: Map<string, boolean>;
}

interface Closing {
  readonly topic: Topic;
  readonly waits: readonly FiredWait[];
}

export class TriggerLog {
  readonly #options: TriggerLogOptions;
  readonly #topics = new Map<number, Topic>();
  /** Triggers with lines to write, and triggers to announce, the oldest first. */
  readonly #talking = new Set<Topic>();
  readonly #silent = new Set<Topic>();
  #closings: Closing[] = [];
  /** A line about a trigger that has just ended still belongs in the logs of its waiters. */
  readonly #ended = new Map<number, Closing>();
  /** Open logs, least recently used first. */
  readonly #files = new Map<string, AttemptLog>();
  /** Logs that are being closed, which is a request each if they are in a bucket. */
  readonly #closing = new Map<string, Promise<void>>();
  #work: Promise<void> | null = null;
  #announceTimer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: TriggerLogOptions) {
    this.#options = options;
  }

  watch(trigger: { readonly id: number; readonly kind: string; readonly args: Json }): void {
    const announceAt = performance.now() + (this.#options.announceAfterMs ?? 1_000);
    const args = JSON.stringify(trigger.args);
    const what = `${trigger.kind} ${args.length > 500 ? `${args.slice(0, 500)}…` : args}`;
    const topic = {
      id: trigger.id,
      what,
      announceAt,
      lines: [],
      lost: 0,
      isAnnounced: false,
      logged: new Map<string, boolean>(),
    };
    this.#topics.set(trigger.id, topic);
    this.#silent.add(topic);
    this.#armAnnouncing();
  }

  /** The trigger no longer runs here; its pending lines are still written. */
  forget(id: number): void {
    const topic = this.#topics.get(id);
    if (topic !== undefined) this.#silent.delete(topic);
    this.#topics.delete(id);
  }

  line(id: number, level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void {
    this.#append(id, { level, message, fields, time: Date.now(), byEngine: false });
  }

  engine(id: number, level: LogLevel, message: string): void {
    const line = { level, message, time: Date.now(), byEngine: true };
    const ended = this.#ended.get(id);
    if (this.#topics.has(id) || ended === undefined) {
      this.#append(id, line);
      return;
    }
    ended.topic.lines.push(line);
    this.#closings.push(ended);
    this.#start();
  }

  /** Logged in the engine's log, and in the logs of the waiting tasks if the trigger has just fired. */
  ignoredAbort({ id, kind, args, ms }: IgnoredAbort): void {
    const tasks = (this.#ended.get(id)?.waits ?? []).slice(0, MAX_NAMED).map(({ task_id }) => task_id);
    const remedy = "pass abort of run(ctx) on to what it waits for, and return when it is aborted";
    const facts = { trigger: id, kind, args, ms, ...(tasks.length > 0 && { tasks }) };
    this.#options.logger.warn("a trigger ignores abort", { ...facts, remedy });
    this.engine(
      id,
      "warn",
      `Trigger "${kind}" ignores abort: it was still at work after ${ms} ms; ${remedy}.`,
    );
  }

  /** The closing line, for the waits that the trigger ended. */
  ended(
    id: number,
    waits: readonly FiredWait[],
    said: { readonly level: LogLevel; readonly message: string },
  ): void {
    const topic = this.#topics.get(id);
    if (topic === undefined) return;
    this.forget(id);
    this.#talking.delete(topic);
    if (waits.length === 0) return;
    topic.lines.push({ ...said, time: Date.now(), byEngine: true });
    const closing = { topic, waits };
    this.#closings.push(closing);
    this.#ended.set(id, closing);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
    this.#start();
  }

  /** Resolves when all lines so far are written. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#announceTimer) clearTimeout(this.#announceTimer);
    // Lines added during a write get a write of their own.
    while (this.#work !== null) await this.#work;
    for (const key of [...this.#files.keys()]) this.#closeFile(key);
    await Promise.all(this.#closing.values());
  }

  #append(id: number, line: Said): void {
    const topic = this.#topics.get(id);
    if (topic === undefined) return;
    if (topic.lines.length >= MAX_WAITING_LINES) {
      topic.lost++;
      return;
    }
    topic.lines.push(line);
    this.#talking.add(topic);
    this.#start();
  }

  #armAnnouncing(): void {
    const [first] = this.#silent;
    if (this.#announceTimer !== null || first === undefined || this.#closed) return;
    const wait = Math.max(GATHER_MS, first.announceAt - performance.now());
    this.#announceTimer = setTimeout(() => {
      this.#announceTimer = null;
      this.#start();
    }, wait);
    this.#announceTimer.unref();
  }

  #start(): void {
    this.#work ??= this.#write()
      .catch((error) => {
        this.#options.logger.warn("logs of triggers could not be written", { error: messageOf(error) });
      })
      .finally(() => {
        this.#work = null;
        this.#armAnnouncing();
        if (this.#closings.length > 0 || this.#talking.size > 0) this.#start();
      });
  }

  async #write(): Promise<void> {
    // The closing line is not delayed: the task resumes at once, and its own lines follow.
    if (this.#closings.length === 0 && !this.#closed) await sleep(GATHER_MS);
    const closings = this.#closings;
    this.#closings = [];
    const talking = [...this.#talking];
    this.#talking.clear();
    await this.#writeClosings(closings);
    const silent = this.#closed ? [] : this.#dueAnnouncements();
    const topics = [...new Set([...talking, ...silent])];
    if (topics.length === 0) return;
    const ids = topics.map(({ id }) => id);
    const places = await subscribersOf(
      this.#options.database,
      ids,
      silent.length > 0 ? MAX_ANNOUNCED : HEARD_BY,
    );
    for (const topic of topics) await this.#writeTopic(topic, places.get(topic.id) ?? []);
  }

  #dueAnnouncements(): Topic[] {
    const now = performance.now();
    const due: Topic[] = [];
    for (const topic of this.#silent) {
      if (topic.announceAt > now || due.length >= ANNOUNCED_AT_ONCE) break;
      this.#silent.delete(topic);
      if (!topic.isAnnounced) due.push(topic);
    }
    return due;
  }

  async #writeClosings(closings: readonly Closing[]): Promise<void> {
    if (closings.length === 0) return;
    const runs = [...new Set(closings.flatMap(({ waits }) => waits.map((wait) => wait.dag_run_id)))];
    const dags = await dagsOfRuns(this.#options.database, runs);
    for (const { topic, waits } of closings) {
      const places = waits.flatMap((wait) => {
        const dag_id = dags.get(wait.dag_run_id);
        return dag_id === undefined ? [] : [{ ...wait, dag_id }];
      });
      await this.#writeTopic(topic, places);
      for (const place of places) {
        this.#closeFile(this.#key(place));
        if (this.#closing.size >= CLOSED_AT_ONCE) await Promise.race(this.#closing.values());
      }
    }
  }

  async #writeTopic(topic: Topic, places: readonly Place[]): Promise<void> {
    const { lines, lost } = topic;
    topic.lines = [];
    topic.lost = 0;
    topic.isAnnounced = true;
    const hearers = receiversOf(topic, places);
    const [first] = hearers;
    const unopened = places.filter(({ attempt }) => !topic.logged.has(attempt)).map(({ attempt }) => attempt);
    const ends = await waitEndsOf(this.#options.database, unopened);
    for (const place of places) {
      const isHearer = hearers.has(place);
      const isNew = !topic.logged.has(place.attempt);
      topic.logged.set(place.attempt, isHearer);
      if (!isHearer && !isNew) continue;
      const file = await this.#file(this.#key(place));
      // The wait began before the first line, although its opening is written only now.
      const since = Math.min(lines[0]?.time ?? Date.now(), Date.now());
      if (isNew) file.engine("info", opening(topic, ends.get(place.attempt), isHearer ? null : first), since);
      if (!isHearer) continue;
      for (const line of lines) write(file, line);
      if (lost > 0) file.engine("warn", `${lost} lines of the trigger were dropped: it logs too much.`);
    }
    if (topic.logged.size > MAX_TOLD) forgetOthers(topic, places);
  }

  async #file(key: string): Promise<AttemptLog> {
    const { mask, logger, maxBytes = 10 * 1024 * 1024, maxOpenFiles = 128 } = this.#options;
    let log = this.#files.get(key);
    if (log === undefined) {
      await this.#closing.get(key);
      log = new AttemptLog({
        logs: this.#options.logs,
        key,
        maxBytes,
        mask,
        // Written when the wait is added, not when its file is opened again.
        opening: () => null,
        onPressure: () => {},
        onError: (error) =>
          logger.warn("a trigger's log cannot be written", { log: key, error: messageOf(error) }),
      });
    }
    this.#files.delete(key);
    this.#files.set(key, log);
    const [oldest] = this.#files.keys();
    if (this.#files.size > maxOpenFiles && oldest !== undefined) this.#closeFile(oldest);
    if (this.#closing.size >= CLOSED_AT_ONCE) await Promise.race(this.#closing.values());
    return log;
  }

  #closeFile(key: string): void {
    const log = this.#files.get(key);
    if (log === undefined) return;
    this.#files.delete(key);
    const closed = () => void this.#closing.delete(key);
    this.#closing.set(key, log.close(0).then(closed, closed));
  }

  #key(place: Place): string {
    const { dag_id, dag_run_id, task_id, map_index, try_number, attempt } = place;
    return `${dag_id}/${dag_run_id}/${task_id}/${map_index}/${try_number}-${attempt}.trigger.log`;
  }
}

/** Removes most departed waits: a trigger may run for months while waits come and go. */
function forgetOthers(topic: Topic, places: readonly Place[]): void {
  const here = new Set(places.map(({ attempt }) => attempt));
  for (const attempt of topic.logged.keys()) if (!here.has(attempt)) topic.logged.delete(attempt);
}

/** Attempts that receive the lines keep receiving them; free places go to the first of the others. */
function receiversOf(topic: Topic, places: readonly Place[]): Set<Place> {
  const hearers = new Set(places.filter(({ attempt }) => topic.logged.get(attempt) === true));
  for (const place of places) {
    if (hearers.size >= HEARD_BY) break;
    hearers.add(place);
  }
  return hearers;
}

function opening(topic: Topic, endsAt: Date | null | undefined, heardBy: Place | null | undefined): string {
  const until = endsAt ? `, until ${endsAt.toISOString()} at the latest` : "";
  const text = `Waiting for ${topic.what}${until} (trigger ${topic.id}).`;
  if (!heardBy) return text;
  const index = heardBy.map_index >= 0 ? `[${heardBy.map_index}]` : "";
  const task = `task "${heardBy.task_id}${index}" of DAG "${heardBy.dag_id}", run ${heardBy.dag_run_id}`;
  return `${text} Many tasks wait for it: its output is in the log of ${task}.`;
}

function write(log: AttemptLog, line: Said): void {
  if (line.byEngine) {
    log.engine(line.level, line.message, line.time);
    return;
  }
  const record = line.fields === undefined ? { m: line.message } : { m: line.message, f: line.fields };
  log.frame({
    source: "task",
    level: line.level,
    time: line.time,
    payload: Buffer.from(JSON.stringify(record)),
  });
}
