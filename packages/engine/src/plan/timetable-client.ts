/**
 * Gets plans from user-defined timetables: claims requests from the database, runs them in child processes, and stores the
 * answers. It runs beside the scheduler's loop, never within it: a timetable that hangs does not delay active runs.
 *
 * A few requests run at the same time, each in its own child. Timetables that have failed may not use all children, not
 * even together with new ones: for any number of hanging timetables, one child is left for the others. A request is
 * claimed only when a child is free, and runs at once.
 *
 * A failure is stored as the schedule error of its DAG, and retried with a growing delay. An unavailable database is no
 * failure of the timetable: the next poll finds the requests again.
 */
import { durationText } from "@tradewind/sdk/wording";
import type { BundleCache } from "../code/bundle-cache.ts";
import type { PlannedRun } from "../model/calendar/planner.ts";
import { spread, windowOf } from "../model/calendar/planner.ts";
import { timetableRetryMs } from "../model/index.ts";
import { EngineError, messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import type { ProcessUser } from "../service/process-user.ts";
import { type Database, isTransient } from "../store/database/database.ts";
import type { ServedDags } from "../store/job/served-dags.ts";
import {
  claimQuestions,
  FAILING,
  nextQuestionIn,
  type Question,
  releaseQuestions,
  type Standing,
  storeAnswer,
  storeFailure,
  TRIED,
  UNKNOWN,
} from "../store/plan/timetable-plans.ts";
import { TimetableProcess } from "./timetable-process.ts";

export interface TimetableClientOptions {
  readonly database: Database;
  readonly bundles: BundleCache;
  readonly logger: Logger;
  /** A DAG has a new plan. */
  readonly onPlanned: () => void;
  readonly answerMs?: number;
  readonly user?: ProcessUser | null | undefined;
  /** Default: all. */
  readonly dags?: ServedDags | undefined;
}

/** Maximum number of concurrent children: in all, for timetables that have not been tried, for timetables that have failed. */
const CHILDREN: { readonly [worst in Standing]: number } = { [TRIED]: 4, [UNKNOWN]: 3, [FAILING]: 2 };
const ANSWER_MS = 10_000;
/** Time to load the code and to store the answer. A claim that is older belongs to a dead process. */
const MARGIN_MS = 6_000;

export class TimetableClient {
  readonly #options: TimetableClientOptions;
  readonly #answerMs: number;
  /** The last used first: it has its bundles loaded. Unused entries have no child process. */
  readonly #idle: TimetableProcess[];
  readonly #processes: readonly TimetableProcess[];
  readonly #underWay = new Map<Question, Promise<void>>();
  #turn: Promise<void> | null = null;
  #isNews = false;
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: TimetableClientOptions) {
    this.#options = options;
    const answerMs = options.answerMs ?? ANSWER_MS;
    this.#answerMs = answerMs;
    this.#idle = Array.from({ length: CHILDREN[TRIED] }, () => {
      return new TimetableProcess({ answerMs, user: options.user });
    });
    this.#processes = [...this.#idle];
    options.bundles.onOtherPackages(() => {
      for (const process of this.#processes) process.replaceChild();
    });
  }

  /** There may be requests, or a free child. Never throws; one turn at a time. */
  poll(): void {
    if (this.#stopped) return;
    this.#isNews = true;
    this.#turn ??= this.#handOut()
      .catch((error: unknown) => {
        this.#isNews = false;
        this.#cannot(error);
      })
      .finally(() => {
        this.#turn = null;
        // A call that arrived while the turn was ending.
        if (this.#isNews) this.poll();
      });
  }

  /** Releases the requests in progress. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#turn;
    await Promise.all(this.#processes.map((each) => each.stop()));
    await Promise.all(this.#underWay.values());
  }

  /** Assigns requests to free children while there are any. An answer that arrives meanwhile causes another poll. */
  async #handOut(): Promise<void> {
    const { dags, database } = this.#options;
    const holdMs = this.#answerMs + MARGIN_MS;
    let worst = this.#worst();
    while (this.#isNews && !this.#stopped) {
      this.#isNews = false;
      for (worst = this.#worst(); worst !== null && !this.#stopped; worst = this.#worst()) {
        const [question] = await claimQuestions(database, 1, holdMs, worst, dags);
        if (question === undefined) break;
        this.#begin(question);
      }
    }
    if (this.#timer) clearTimeout(this.#timer);
    if (worst === null || this.#stopped) return;
    const wait = await nextQuestionIn(database, worst, dags);
    if (wait === null || this.#stopped) return;
    this.#timer = setTimeout(() => this.poll(), Math.min(Math.max(wait, 0) + 5, 2 ** 30));
  }

  /** The worst standing with a free child; null if there is none, and the next answer polls again. */
  #worst(): Standing | null {
    const busy = (from: Standing) =>
      this.#underWay.keys().reduce((sum, { standing }) => sum + (standing >= from ? 1 : 0), 0);
    for (const worst of [TRIED, UNKNOWN, FAILING] as const)
      if (busy(worst) >= CHILDREN[worst]) return worst === TRIED ? null : ((worst - 1) as Standing);
    return FAILING;
  }

  #begin(question: Question): void {
    const child = this.#idle.shift();
    if (child === undefined) throw new Error("more requests than children");
    const answered = this.#answer(child, question)
      .catch((error: unknown) => this.#cannot(error))
      .finally(() => {
        this.#underWay.delete(question);
        this.#idle.unshift(child);
        this.poll();
      });
    this.#underWay.set(question, answered);
  }

  #cannot(error: unknown): void {
    this.#options.logger.debug("could not poll timetables", { error: messageOf(error) });
  }

  async #answer(child: TimetableProcess, question: Question): Promise<void> {
    const { database, logger, onPlanned } = this.#options;
    const { dagId, failures } = question;
    try {
      const run = await this.#call(child, question);
      if (await storeAnswer(database, question, run)) onPlanned();
    } catch (thrown) {
      // Neither an unavailable database nor our own stop is the timetable's fault.
      if (isTransient(thrown)) throw thrown;
      if (this.#stopped) return releaseQuestions(database, [question]);
      const code = thrown instanceof EngineError ? thrown.code : "TIMETABLE_THREW";
      const error = { code, message: messageOf(thrown), at: new Date(question.now).toISOString() };
      const retryMs = timetableRetryMs(failures + 1);
      await storeFailure(database, question, { error, retryMs });
      const again = durationText(retryMs);
      logger.warn("a timetable failed", { dag: dagId, ...error, failures: failures + 1, again });
    }
  }

  async #call(
    child: TimetableProcess,
    { dag, dagId, bundleHash, last, now }: Question,
  ): Promise<PlannedRun | null> {
    const bundle = await this.#options.bundles.path(bundleHash);
    const slackMs = dag.jitterMs ?? 0;
    const call = { last, now, ...windowOf(dag), slackMs };
    return spread(dag, await child.call({ bundle, dagId, call }));
  }
}
