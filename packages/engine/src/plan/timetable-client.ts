/**
 * Gets plans from timetables of the authors' own: takes questions from the database, has them answered in child processes,
 * stores the answers. Beside the scheduler's loop and never within it: what hangs there costs runs that are under way
 * nothing.
 *
 * A few are asked at the same time, each in a child of its own. Those that have failed may not have all of these children,
 * nor may they together with those of which nothing is known yet: however many hang, there is one left for the others. A
 * question is taken only when there is a child for it, and asked at once.
 *
 * Whatever goes wrong with one of them is stored as its DAG's schedule error, and asked again later and later. A database
 * that is away is nobody's error: the next look finds the questions where they were.
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
  FAILING,
  nextQuestionIn,
  type Question,
  releaseQuestions,
  type Standing,
  storeAnswer,
  storeFailure,
  TRIED,
  takeQuestions,
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
  /** Left out: all. */
  readonly dags?: ServedDags | undefined;
}

/** Children at the same time: in all, for those that have not been tried, for those that have failed. */
const CHILDREN: { readonly [worst in Standing]: number } = { [TRIED]: 4, [UNKNOWN]: 3, [FAILING]: 2 };
const ANSWER_MS = 10_000;
/** To get the code, and to store the answer. Who has not answered by then has died. */
const MARGIN_MS = 6_000;

export class TimetableClient {
  readonly #options: TimetableClientOptions;
  readonly #answerMs: number;
  /** The last used first: it has its bundles loaded. Those that are not needed have no child. */
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

  /** There may be questions, or a child for one. Never throws; one turn at a time. */
  look(): void {
    if (this.#stopped) return;
    this.#isNews = true;
    this.#turn ??= this.#handOut()
      .catch((error: unknown) => {
        this.#isNews = false;
        this.#cannot(error);
      })
      .finally(() => {
        this.#turn = null;
        // Told while the turn was ending.
        if (this.#isNews) this.look();
      });
  }

  /** What is under way is given back. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#turn;
    await Promise.all(this.#processes.map((each) => each.stop()));
    await Promise.all(this.#underWay.values());
  }

  /** Gives every child a question, as long as there are any. An answer that comes meanwhile is a reason to look again. */
  async #handOut(): Promise<void> {
    const { dags, database } = this.#options;
    const holdMs = this.#answerMs + MARGIN_MS;
    let worst = this.#worst();
    while (this.#isNews && !this.#stopped) {
      this.#isNews = false;
      for (worst = this.#worst(); worst !== null && !this.#stopped; worst = this.#worst()) {
        const [question] = await takeQuestions(database, 1, holdMs, worst, dags);
        if (question === undefined) break;
        this.#begin(question);
      }
    }
    if (this.#timer) clearTimeout(this.#timer);
    if (worst === null || this.#stopped) return;
    const wait = await nextQuestionIn(database, worst, dags);
    if (wait === null || this.#stopped) return;
    this.#timer = setTimeout(() => this.look(), Math.min(Math.max(wait, 0) + 5, 2 ** 30));
  }

  /** The worst for which there is a child; null: there is none at all, and the next answer looks again. */
  #worst(): Standing | null {
    const busy = (from: Standing) =>
      this.#underWay.keys().reduce((sum, { standing }) => sum + (standing >= from ? 1 : 0), 0);
    for (const worst of [TRIED, UNKNOWN, FAILING] as const)
      if (busy(worst) >= CHILDREN[worst]) return worst === TRIED ? null : ((worst - 1) as Standing);
    return FAILING;
  }

  #begin(question: Question): void {
    const child = this.#idle.shift();
    if (child === undefined) throw new Error("more questions than children");
    const answered = this.#answer(child, question)
      .catch((error: unknown) => this.#cannot(error))
      .finally(() => {
        this.#underWay.delete(question);
        this.#idle.unshift(child);
        this.look();
      });
    this.#underWay.set(question, answered);
  }

  #cannot(error: unknown): void {
    this.#options.logger.debug("cannot ask timetables now", { error: messageOf(error) });
  }

  async #answer(child: TimetableProcess, question: Question): Promise<void> {
    const { database, logger, onPlanned } = this.#options;
    const { dagId, failures } = question;
    try {
      const run = await this.#ask(child, question);
      if (await storeAnswer(database, question, run)) onPlanned();
    } catch (thrown) {
      // Neither a database that is away nor our own end is the timetable's fault.
      if (isTransient(thrown)) throw thrown;
      if (this.#stopped) return releaseQuestions(database, [question]);
      const code = thrown instanceof EngineError ? thrown.code : "TIMETABLE_THREW";
      const error = { code, message: messageOf(thrown), at: new Date(question.now).toISOString() };
      const retryMs = timetableRetryMs(failures + 1);
      await storeFailure(database, question, { error, retryMs });
      const again = durationText(retryMs);
      logger.warn("a timetable cannot be asked", { dag: dagId, ...error, failures: failures + 1, again });
    }
  }

  async #ask(
    child: TimetableProcess,
    { dag, dagId, bundleHash, last, now }: Question,
  ): Promise<PlannedRun | null> {
    const bundle = await this.#options.bundles.path(bundleHash);
    const slackMs = dag.jitterMs ?? 0;
    const call = { last, now, ...windowOf(dag), slackMs };
    return spread(dag, await child.ask({ bundle, dagId, call }));
  }
}
