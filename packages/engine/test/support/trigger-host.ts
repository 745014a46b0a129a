/** A process that runs triggers, as far as a trigger can see. */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type {
  ConnectionFacts,
  LogLevel,
  RunningTrigger,
  TriggerHost,
  TriggerYield,
} from "@tradewind/sdk/program";
import { expect } from "vitest";
import { builtinTrigger } from "../../src/builtin/index.ts";
import { afterTest } from "./after-file.ts";

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, Json>>;
}

export class TestHost implements TriggerHost {
  readonly #controller = new AbortController();
  readonly #connections: ReadonlyMap<string, Partial<ConnectionFacts>>;
  readonly #waiters = new Set<() => void>();
  readonly lines: LogLine[] = [];
  readonly limits: { key: string; limit: number }[] = [];
  polls = 0;

  constructor(connections: Readonly<Record<string, Partial<ConnectionFacts>>> = {}) {
    this.#connections = new Map(Object.entries(connections));
  }

  get abort(): AbortSignal {
    return this.#controller.signal;
  }

  stop(): void {
    this.#controller.abort();
  }

  log(level: LogLevel, message: string, fields: Readonly<Record<string, Json>> = {}): void {
    this.lines.push({ level, message, fields });
    this.#changed();
  }

  polled(): void {
    this.polls++;
    this.#changed();
  }

  async variable(): Promise<string | undefined> {
    return undefined;
  }

  async connection(id: string): Promise<ConnectionFacts | undefined> {
    const facts = this.#connections.get(id);
    return facts === undefined ? undefined : { ...BLANK, id, ...facts };
  }

  limited<T>(key: string, limit: number, work: () => Promise<T>): Promise<T> {
    this.limits.push({ key, limit });
    return work();
  }

  /** Waits until this many more polls have ended. */
  async morePolls(count: number): Promise<void> {
    const enough = this.polls + count;
    await this.#until(() => this.polls >= enough);
  }

  /** Waits until a matching line has been logged. */
  async logged(pattern: RegExp): Promise<void> {
    await this.#until(() => this.lines.some(({ message }) => pattern.test(message)));
  }

  /** All logged lines, as a reader would see them. */
  get text(): string {
    return this.lines.map((line) => JSON.stringify(line)).join("\n");
  }

  #changed(): void {
    for (const waiter of [...this.#waiters]) waiter();
  }

  #until(isSo: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!isSo()) return;
        this.#waiters.delete(look);
        resolve();
      };
      this.#waiters.add(look);
      look();
    });
  }
}

const BLANK: ConnectionFacts = {
  id: "",
  type: "",
  host: null,
  port: null,
  login: null,
  password: null,
  schema: null,
  extra: null,
};

/** A started trigger; stopped after the test. */
export interface StartedTrigger {
  /** Its next event. Requested only when awaited, or by `begin`. */
  next(): Promise<TriggerYield>;
  /** Requests the next event without waiting; `hasFired` reports whether it has arrived. */
  begin(): { readonly hasFired: boolean; readonly outcome: Promise<TriggerYield> };
  stop(): Promise<void>;
}

export async function startTrigger(kind: string, args: Json, host: TestHost): Promise<StartedTrigger> {
  const program = await builtinTrigger(kind);
  if (program === undefined) throw new Error(`unknown trigger kind ${kind}`);
  const trigger: RunningTrigger = await program.start(args, host);
  let stopping: Promise<void> | undefined;
  const stop = () => {
    host.stop();
    stopping ??= trigger.cleanup();
    return stopping;
  };
  started.push(stop);
  return {
    next: () => trigger.next(),
    begin: () => {
      const pending = { hasFired: false, outcome: trigger.next() };
      pending.outcome.then(
        () => {
          pending.hasFired = true;
        },
        () => {
          pending.hasFired = true;
        },
      );
      return pending;
    },
    stop,
  };
}

const started: (() => Promise<void>)[] = [];

afterTest(async () => {
  await Promise.all(started.splice(0).map((stop) => stop()));
});

/** A call as the SDK creates it. */
/** Stops a trigger that waits: it ends within 100 ms. */
export async function expectPromptStop(
  trigger: StartedTrigger,
  outcome: Promise<TriggerYield>,
): Promise<void> {
  const begun = performance.now();
  await trigger.stop();
  expect(await outcome).toEqual({ kind: "done" });
  expect(performance.now() - begun).toBeLessThan(100);
}

export function callOf(kind: string, args: Json): TriggerCall {
  return { kind, args, source: "builtin", queue: "default", replicas: 1, wake: null, timed: null };
}
