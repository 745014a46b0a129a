/**
 * Samples the main thread while it is busy: Node's own debugger interrupts it, reads its stack, evaluates the scope it
 * is in, and resumes it. Interrupts reach JavaScript anywhere, also in a loop without calls and in a regular expression,
 * but not in native code: a sample that was requested there is taken when that code returns.
 */
import { type Debugger, Session } from "node:inspector";
import type { Culprit } from "../process/runner-protocol.ts";
import { CULPRIT } from "./scope.ts";
import { sourceLine } from "./source-lines.ts";

export interface Sight {
  readonly who: Culprit;
  readonly stack: string;
}

const MAX_FRAMES = 20;

export class StallProbe {
  readonly #beat: () => bigint;
  readonly #seen: (sight: Sight) => void;
  #session: Session | null = null;

  /** @param beat Changes when the event loop has turned: a sample after that is discarded. */
  constructor(beat: () => bigint, seen: (sight: Sight) => void) {
    this.#beat = beat;
    this.#seen = seen;
  }

  /** False if the last sample is still pending. */
  begin(beat: bigint): boolean {
    if (this.#session !== null) return false;
    const session = new Session();
    this.#session = session;
    const scripts = new Map<string, string>();
    session.on("Debugger.scriptParsed", ({ params }) => scripts.set(params.scriptId, params.url));
    session.once("Debugger.paused", ({ params }) => {
      void this.#paused(session, params.callFrames, scripts, beat);
    });
    session.connectToMainThread();
    session.post("Debugger.enable");
    session.post("Debugger.pause");
    return true;
  }

  /** The main thread is paused by this sample: it must be resumed whatever fails here. */
  async #paused(
    session: Session,
    frames: readonly Debugger.CallFrame[],
    scripts: ReadonlyMap<string, string>,
    beat: bigint,
  ): Promise<void> {
    let sight: Sight | null = null;
    try {
      // In a function of Node itself the names of the expression may differ: then the caller's frame is used.
      const frame = frames.find(({ location }) => !isInternal(scripts.get(location.scriptId))) ?? frames[0];
      if (frame !== undefined && this.#beat() === beat) {
        const who = await culprit(session, frame.callFrameId);
        if (this.#beat() === beat) sight = { who, stack: "" };
      }
    } finally {
      session.post("Debugger.resume");
      session.post("Debugger.disable");
      session.disconnect();
      this.#session = null;
    }
    // After the thread was resumed: mapping its source takes a while.
    if (sight !== null) this.#seen({ ...sight, stack: stackOf(frames, scripts) });
  }
}

function isInternal(url: string | undefined): boolean {
  return url === undefined || url.startsWith("node:");
}

function culprit(session: Session, callFrameId: string): Promise<Culprit> {
  const expression = `globalThis[Symbol.for("${CULPRIT}")]()`;
  return new Promise((resolve) => {
    session.post(
      "Debugger.evaluateOnCallFrame",
      { callFrameId, expression, returnByValue: true, silent: true },
      (error, answer) => {
        const value: unknown = error === null ? answer.result.value : null;
        resolve(typeof value === "number" || typeof value === "string" ? value : null);
      },
    );
  });
}

function stackOf(frames: readonly Debugger.CallFrame[], scripts: ReadonlyMap<string, string>): string {
  return frames
    .slice(0, MAX_FRAMES)
    .map(({ functionName, location }) => {
      const { scriptId, lineNumber, columnNumber } = location;
      const url = scripts.get(scriptId) ?? "unknown";
      const place = sourceLine({ url, line: lineNumber, column: columnNumber ?? 0 });
      return functionName === "" ? `    at ${place}` : `    at ${functionName} (${place})`;
    })
    .join("\n");
}
