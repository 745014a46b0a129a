/** What the main thread of a page did, from a trace of the browser. Times in ms, on the clock of the trace. */
import type { Page } from "../../packages/web/test/support/browser.ts";
import type { Stage } from "./stage.ts";

interface Event {
  readonly name: string;
  readonly cat: string;
  readonly ph: string;
  readonly ts: number;
  readonly dur?: number;
  readonly pid: number;
  readonly tid: number;
  readonly args?: {
    readonly name?: string;
    readonly data?: { readonly requestId?: string; readonly url?: string; readonly type?: string };
  };
}

interface Task {
  readonly from: number;
  readonly to: number;
}

/** A task of a thread, as the browser's scheduler sees it. */
const TASK = "ThreadControllerImpl::RunTask";

export class Trace {
  readonly #events: readonly Event[];
  readonly #tasks: readonly Task[];
  readonly #thread: { pid: number; tid: number };

  constructor(events: readonly Event[], mark: string) {
    const marked = events.find(({ cat, name }) => cat.includes("blink.user_timing") && name === mark);
    if (marked === undefined) throw new Error(`no mark "${mark}" in the trace`);
    const { pid, tid } = marked;
    this.#thread = { pid, tid };
    this.#events = events.filter((each) => each.pid === pid);
    this.#tasks = this.#events
      .filter((each) => each.tid === tid && each.name === TASK && each.dur !== undefined)
      .map(({ dur = 0, ts }) => ({ from: ts / 1_000, to: (ts + dur) / 1_000 }));
    if (this.#tasks.length === 0) throw new Error("no task of the main thread in the trace");
  }

  /** When marks of this name were set. */
  marks(name: string): number[] {
    return this.#events
      .filter((each) => each.cat.includes("blink.user_timing") && each.name === name)
      .map(({ ts }) => ts / 1_000);
  }

  /** From the last click to the last mark "shown". */
  sinceClick(): number {
    return (this.marks("shown").at(-1) ?? Number.NaN) - (this.dispatched("click").at(-1) ?? Number.NaN);
  }

  /** When the main thread handled events of a type. */
  dispatched(type: string): number[] {
    const { tid } = this.#thread;
    return this.#events
      .filter((each) => each.name === "EventDispatch" && each.tid === tid && each.args?.data?.type === type)
      .map(({ ts }) => ts / 1_000);
  }

  /** When answers from addresses that contain this text were complete. */
  answered(text: string): number[] {
    const requests = new Set(
      this.#events
        .filter(({ args, name }) => name === "ResourceSendRequest" && args?.data?.url?.includes(text))
        .map(({ args }) => args?.data?.requestId),
    );
    return this.#events
      .filter(({ args, name }) => name === "ResourceFinish" && requests.has(args?.data?.requestId))
      .map(({ ts }) => ts / 1_000);
  }

  /** How long the main thread worked in this time. */
  busy(from: number, to: number): number {
    return this.#tasks.reduce(
      (sum, task) => sum + Math.max(0, Math.min(to, task.to) - Math.max(from, task.from)),
      0,
    );
  }

  /** The longest of the tasks that began in this time. */
  longest(from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY): number {
    return this.#tasks.reduce(
      (most, task) => (task.from >= from && task.from < to ? Math.max(most, task.to - task.from) : most),
      0,
    );
  }
}

/** Traces a page during some work, which ends with this mark in the page. */
export async function traced(
  stage: Stage,
  page: Page,
  work: () => Promise<void>,
  mark = "shown",
): Promise<Trace> {
  await stage.browser.startTracing(page, {
    categories: ["toplevel", "devtools.timeline", "blink.user_timing", "loading"],
  });
  let buffer: Buffer;
  try {
    await work();
  } finally {
    buffer = await stage.browser.stopTracing();
  }
  const { traceEvents } = JSON.parse(buffer.toString("utf8")) as { traceEvents: Event[] };
  return new Trace(traceEvents, mark);
}
