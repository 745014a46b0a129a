/** The batched calls of one worker: claims, reports, and requests of user code. */
import type { Json } from "@tradewind/sdk/manifest";
import { type Known, type LargePlace, LargeValue, rejoin } from "../../model/index.ts";
import { EngineError } from "../../service/errors.ts";
import type { Question } from "../attempt/protocol.ts";
import type { Assignment } from "../contract.ts";
import { BatchedCall } from "./batched-call.ts";
import type { ExecutionClient } from "./execution-client.ts";
import type { Repeats } from "./repeated-call.ts";

/** A claimed assignment with its token. */
export interface Claimed {
  readonly token: string;
  /** The id under which the worker claimed it. */
  readonly worker: number;
  readonly assignment: Assignment;
  /** It was cancelled or superseded after an earlier claim whose answer was lost: it must not run. */
  readonly isVoid: boolean;
}

interface ClaimAnswer {
  readonly claimed: readonly {
    readonly token: string;
    readonly assignment: Assignment;
    readonly is_void: boolean;
  }[];
}

/** What a call for an assignment needs. */
export type Claim = Pick<Claimed, "token" | "worker">;

export interface ReportItem {
  readonly id: string;
  /** A worker that was declared dead has no assignments any more: what it had under its former id is not reported. */
  readonly worker: number;
  readonly token: string;
  readonly type: "started" | "ended";
  readonly content: Json;
  /** By performance.now(). */
  readonly at: number;
}

interface RequestItem {
  readonly worker: number;
  readonly token: string;
  readonly request: Question;
  readonly ago_ms: number;
}

interface Answer {
  readonly value?: Json;
  readonly large?: readonly LargePlace[];
  readonly error?: string;
  readonly code?: string;
}

/** A chunk of a log. */
interface LogItem {
  readonly worker: number;
  readonly token: string;
  /** null: only the end of the log is wanted. */
  readonly offset: number | null;
  readonly text: string;
}

interface LogAnswer {
  readonly size?: number;
  readonly error?: string;
  readonly code?: string;
}

const LOG_GAP_MS = 250;

const SUPERSEDED = {
  error: "This attempt is no longer the current one.",
  code: "TASK_ATTEMPT_SUPERSEDED",
};

export interface WorkerCallsOptions extends Repeats {
  readonly client: ExecutionClient;
  /** The id under which the worker is registered now. */
  readonly worker: () => number;
}

export class WorkerCalls {
  readonly #claims: BatchedCall<string, Claimed | null>;
  readonly #reports: BatchedCall<ReportItem, boolean>;
  readonly #requests: BatchedCall<RequestItem, Answer>;
  readonly #logs: BatchedCall<LogItem, LogAnswer>;

  constructor({ client, isWanted, onRetry, worker }: WorkerCallsOptions) {
    const how = { isWanted, onRetry };
    this.#claims = new BatchedCall({
      ...how,
      send: async (ids: readonly string[]) => {
        const id = worker();
        const { claimed } = await client.post<ClaimAnswer>("claims", { worker: id, ids });
        const found = new Map(
          claimed.map(({ assignment, is_void: isVoid, token }) => {
            return [assignment.id, { assignment, isVoid, token, worker: id }];
          }),
        );
        return ids.map((id) => found.get(id) ?? null);
      },
    });
    this.#reports = new BatchedCall({
      ...how,
      lengthOf: ({ content }: ReportItem) => JSON.stringify(content).length,
      send: async (items: readonly ReportItem[]) => {
        const id = worker();
        const now = performance.now();
        const current = items.filter((item) => item.worker === id);
        const reports = current.map(({ at, content, token, type }) => {
          return { token, type, content, ago_ms: Math.max(0, now - at) };
        });
        if (reports.length === 0) return items.map(() => false);
        const { superseded } = await client.post<{ superseded: string[] }>("reports", {
          worker: id,
          reports,
        });
        return items.map((item) => item.worker === id && !superseded.includes(item.id));
      },
    });
    const answers = async <I extends { worker: number }, A>(what: string, items: readonly I[]) => {
      const id = worker();
      const current = items.filter((item) => item.worker === id);
      if (current.length === 0) return items.map(() => SUPERSEDED);
      const sent = current.map(({ worker: _, ...item }) => item);
      const answer = await client.post<{ answers: A[] }>(what, { worker: id, [what]: sent });
      const found = new Map(current.map((item, at) => [item, answer.answers[at]]));
      return items.map((item) => found.get(item) ?? SUPERSEDED);
    };
    this.#requests = new BatchedCall({
      ...how,
      send: (items: readonly RequestItem[]) => answers<RequestItem, Answer>("requests", items),
    });
    this.#logs = new BatchedCall({
      ...how,
      send: (items: readonly LogItem[]) => answers<LogItem, LogAnswer>("logs", items),
      lengthOf: ({ text }: LogItem) => text.length,
      gapMs: LOG_GAP_MS,
    });
  }

  /** null: another worker has it, or it is superseded. */
  claim(id: string): Promise<Claimed | null> {
    return this.#claims.add(id);
  }

  /** False: the attempt is no longer current. */
  report(item: ReportItem): Promise<boolean> {
    return this.#reports.add(item);
  }

  async request({ token, worker }: Claim, request: Question, agoMs: number): Promise<Known | undefined> {
    const item = { worker, token, request, ago_ms: agoMs };
    const { code, error, large, value } = await this.#requests.add(item);
    if (error !== undefined) throw code === undefined ? new Error(error) : new EngineError(code, error);
    if (value === undefined || large === undefined) return value;
    return rejoin(value, large.map(revived));
  }

  log(item: LogItem): Promise<LogAnswer> {
    return this.#logs.add(item);
  }

  /** Until `work` has settled, logs are sent at once. */
  hurryLogs(work: Promise<void>): Promise<void> {
    return this.#logs.hurried(work);
  }

  /** Resolves when all reports so far are sent. */
  idle(): Promise<void> {
    return this.#reports.idle();
  }
}

/** Large values arrive as plain JSON. */
export function revived({ at, value }: LargePlace): LargePlace {
  return { at, value: new LargeValue(value.reference, value.path) };
}
