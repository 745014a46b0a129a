/**
 * What executors have reported and the scheduler has not dealt with yet.
 *
 * The slots of an attempt that ended without an heir stay within reach until then. Whoever is given to the executor
 * meanwhile, to stand behind it, would find nobody left to inherit from, and wait for two more transactions; so it takes
 * over these slots. Nothing is at work without slots: one has ended, one begins, and the batch that stores the end says so.
 */
import type { Report } from "./in-hand.ts";
import { Mailbox } from "./mailbox.ts";

type Ended = Extract<Report, { type: "ended" }>;

/** How long news can wait for company: of an attempt that has only just started; of an end whose slots have an heir. */
const PATIENCE_MS = { started: 20, inherited: 8 };

export class ReportBox extends Mailbox<Report> {
  /** Ends without an heir, by lane. */
  readonly #vacating = new Map<string, Ended[]>();

  constructor() {
    super(PATIENCE_MS.started);
  }

  hear(report: Report): void {
    if (report.type === "started") {
      this.postPatiently(report, report.attempt);
      return;
    }
    this.post(report, report.attempt, report.heir === undefined ? 0 : PATIENCE_MS.inherited);
    if (report.vacates === undefined) return;
    const ends = this.#vacating.get(report.vacates);
    if (ends) ends.push(report);
    else this.#vacating.set(report.vacates, [report]);
  }

  /** True: the attempt has the slots of one that has ended in its lane. */
  inherits(lane: string, attempt: string): boolean {
    const end = this.#vacating.get(lane)?.shift();
    if (end) end.heir = attempt;
    return end !== undefined;
  }

  /** Ends that leave their slots to no other attempt. */
  get vacated(): number {
    return this.items.filter((report) => report.type === "ended" && report.heir === undefined).length;
  }

  /** From now on, their slots go to whoever is best in line. */
  override take(limit?: number): Report[] {
    this.#vacating.clear();
    return super.take(limit);
  }
}
