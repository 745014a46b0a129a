/** The calls that a trigger runner makes: start a trigger from stored arguments and read its events. */
import type { Json } from "../src/manifest.ts";
import {
  type ConnectionFacts,
  type LogLevel,
  type RunningTrigger,
  TRIGGER,
  type TriggerHost,
  type TriggerProgram,
} from "../src/runtime/program.ts";

/** A host that records its log and enforces limits. */
export class RecordingTriggerHost implements TriggerHost {
  readonly controller = new AbortController();
  readonly abort = this.controller.signal;
  readonly lines: { level: LogLevel; message: string }[] = [];
  readonly limits: { key: string; limit: number }[] = [];
  polls = 0;

  log(level: LogLevel, message: string): void {
    this.lines.push({ level, message });
  }
  async variable(key: string): Promise<string | undefined> {
    return key === "known" ? "value" : undefined;
  }
  async connection(): Promise<ConnectionFacts | undefined> {
    return undefined;
  }
  polled(): void {
    this.polls++;
  }
  limited<T>(key: string, limit: number, work: () => Promise<T>): Promise<T> {
    this.limits.push({ key, limit });
    return work();
  }
}

export function programOf(kind: unknown): TriggerProgram {
  return (kind as { [TRIGGER]: TriggerProgram })[TRIGGER];
}

export function start(kind: unknown, args: Json, host: TriggerHost): Promise<RunningTrigger> {
  return programOf(kind).start(args, host);
}
