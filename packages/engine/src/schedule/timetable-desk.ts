/**
 * Gets plans from timetables of the authors' own: takes questions from the database, has them answered in a child process,
 * stores the answers. Beside the scheduler's loop and never within it: a class that hangs costs others of its kind their
 * turn for a few seconds, and runs that are under way nothing.
 *
 * Whatever goes wrong with one of them is stored as its DAG's schedule error, and asked again later and later. A database
 * that is away is nobody's error: the next look finds the questions where they were.
 */
import { durationText } from "@tradewind/sdk/wording";
import type { BundleCache } from "../execute/bundle-cache.ts";
import { TimetableProcess } from "../execute/timetable-process.ts";
import { timetableRetryMs } from "../model/index.ts";
import { EngineError, messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import { type Database, isTransient } from "../store/database.ts";
import type { PlannedRun } from "../store/due-runs.ts";
import {
  nextQuestionIn,
  type Question,
  releaseQuestions,
  storeAnswer,
  storeFailure,
  takeQuestions,
} from "../store/timetable-plans.ts";
import { spread, windowOf } from "./planner.ts";

export interface TimetableDeskOptions {
  readonly database: Database;
  readonly bundles: BundleCache;
  readonly logger: Logger;
  /** A DAG has a new plan. */
  readonly onPlanned: () => void;
  readonly answerMs?: number;
}

const AT_ONCE = 16;
const ANSWER_MS = 10_000;
/** After that long the rest of what was taken is given back: somebody in front of it was slow. */
const PATIENCE_MS = 4_000;
/** Who has not answered by then has died. */
const MARGIN_MS = 2_000;

export class TimetableDesk {
  readonly #options: TimetableDeskOptions;
  readonly #answerMs: number;
  readonly #process: TimetableProcess;
  #turn: Promise<void> | null = null;
  #isNews = false;
  #timer: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: TimetableDeskOptions) {
    this.#options = options;
    this.#answerMs = options.answerMs ?? ANSWER_MS;
    this.#process = new TimetableProcess({ answerMs: this.#answerMs });
  }

  /** There may be questions. Never throws; one turn at a time. */
  look(): void {
    if (this.#stopped) return;
    this.#isNews = true;
    this.#turn ??= this.#work()
      .catch((error: unknown) => {
        this.#isNews = false;
        this.#options.logger.debug("cannot ask timetables now", { error: messageOf(error) });
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
    await this.#process.stop();
    await this.#turn;
  }

  async #work(): Promise<void> {
    const { database } = this.#options;
    while (this.#isNews && !this.#stopped) {
      this.#isNews = false;
      const questions = await takeQuestions(database, AT_ONCE, PATIENCE_MS + this.#answerMs + MARGIN_MS);
      if (questions.length > 0) this.#isNews = true;
      const takenAt = performance.now();
      for (const [index, question] of questions.entries()) {
        if (this.#stopped || performance.now() - takenAt > PATIENCE_MS) {
          await releaseQuestions(database, questions.slice(index));
          break;
        }
        await this.#answer(question);
      }
    }
    if (this.#timer) clearTimeout(this.#timer);
    const wait = await nextQuestionIn(database);
    if (wait === null || this.#stopped) return;
    this.#timer = setTimeout(() => this.look(), Math.min(Math.max(wait, 0) + 5, 2 ** 30));
  }

  async #answer(question: Question): Promise<void> {
    const { database, logger, onPlanned } = this.#options;
    const { dagId, failures } = question;
    try {
      const run = await this.#ask(question);
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

  async #ask({ dag, dagId, bundleHash, last, now }: Question): Promise<PlannedRun | null> {
    const bundle = await this.#options.bundles.path(bundleHash);
    const slackMs = dag.jitterMs ?? 0;
    const call = { last, now, ...windowOf(dag), slackMs };
    return spread(dag, await this.#process.ask({ bundle, dagId, call }));
  }
}
