/**
 * Runs a trigger class in a triggerer's child process: creates an instance from stored arguments and reads its events
 * one by one. No other part of the SDK runs user code of triggers.
 */

import { show, TriggerError } from "../check/errors.ts";
import { type JsonKind, jsonCopy } from "../check/output-check.ts";
import { describeIssue } from "../check/standard-schema.ts";
import type { Json } from "../manifest.ts";
import type { CancelContext } from "../runtime/context.ts";
import { endingOf } from "../runtime/ending.ts";
import { errorFacts } from "../runtime/error-facts.ts";
import type { RunningTrigger, TriggerHost, TriggerProgram, TriggerYield } from "../runtime/program.ts";
import { services } from "../runtime/services.ts";
import { tradewindCallsUserCode } from "../runtime/user-code.ts";
import { sleep } from "./sleep.ts";
import type { Trigger, TriggerContext, TriggerKind } from "./trigger.ts";

/** How long to wait for a generator that is still running after its abort, before its cleanup runs beside it. */
const END_LIMIT_MS = 5_000;

export function programOf(id: string, checkedKind: () => TriggerKind): TriggerProgram {
  return Object.freeze({
    protocol: 1 as const,
    id,
    async start(args: Json, host: TriggerHost) {
      const kind = checkedKind();
      return running(id, kind.make(await validated(kind, args)), host);
    },
    async cancel(args: Json, ctx: unknown) {
      const kind = checkedKind();
      const trigger = kind.make(await validated(kind, args));
      await tradewindCallsUserCode(() => trigger.onCancel?.(ctx as CancelContext));
    },
  });
}

async function validated({ id, schema }: TriggerKind, args: Json): Promise<unknown> {
  if (schema === null) return args;
  const result = await schema["~standard"].validate(args);
  if (!result.issues) return result.value;
  throw new TriggerError(
    "TW_TRIGGER_ARGS",
    `trigger ${id}: args: ${result.issues.map(describeIssue).join("; ")}`,
  );
}

function running(id: string, trigger: Trigger<unknown, unknown>, host: TriggerHost): RunningTrigger {
  const ctx: TriggerContext = Object.freeze({
    ...services(host),
    abort: host.abort,
    polled: () => host.polled(),
    limited: <T>(key: string, limit: number, work: () => Promise<T>) => host.limited(key, limit, work),
  });
  let events: AsyncIterator<unknown> | undefined;
  let underWay: Promise<unknown> | undefined;

  async function advance(): Promise<TriggerYield> {
    events ??= trigger.run(ctx)[Symbol.asyncIterator]();
    const { done, value } = await events.next();
    if (!done) return yielded(id, trigger, value);
    if (value !== undefined)
      host.log("warn", `trigger ${id} returned ${show(value)}; an event must be yielded`);
    return { kind: "done" };
  }

  async function end(): Promise<void> {
    // A running generator handles a return only at its next yield.
    await underWay?.catch(() => {});
    await events?.return?.();
  }

  return {
    next() {
      const step = tradewindCallsUserCode(advance);
      underWay = step;
      const over = () => {
        if (underWay === step) underWay = undefined;
      };
      step.then(over, over);
      return step;
    },
    async cleanup() {
      const complain = (error: unknown) => {
        const { message, stack } = errorFacts(error);
        host.log("error", `cleanup of trigger ${id} failed: ${message}`, { stack });
      };
      const ended = new AbortController();
      const ending = end()
        .catch(complain)
        .finally(() => ended.abort());
      await Promise.race([ending, sleep(END_LIMIT_MS, ended.signal)]);
      try {
        await tradewindCallsUserCode(() => trigger.cleanup?.(ctx));
      } catch (error) {
        complain(error);
      }
    },
  };
}

function yielded(id: string, trigger: Trigger<unknown, unknown>, value: unknown): TriggerYield {
  const kind = eventKind(id);
  const ending = endingOf(value, kind);
  if (ending !== null) return { kind: "ending", ending };
  const payload = jsonCopy(value, kind);
  const key = trigger.key?.(value) ?? null;
  if (key === null || typeof key === "string") return { kind: "event", payload, key };
  throw new TriggerError("TW_BAD_TRIGGER", `trigger ${id}: key must return a text, got ${show(key)}`);
}

function eventKind(id: string): JsonKind {
  return {
    root: "event",
    notJson: (message) => new TriggerError("TW_EVENT_NOT_JSON", `trigger ${id}: ${message}`),
    tooLarge: (message) =>
      new TriggerError(
        "TW_EVENT_TOO_LARGE",
        `trigger ${id}: ${message}; store the data elsewhere and yield its address`,
      ),
  };
}
