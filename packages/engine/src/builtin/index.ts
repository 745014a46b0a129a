/**
 * The triggers that the engine runs itself. Each kind is loaded at its first use: a triggerer without S3 never loads its
 * client. Kinds that need the engine's database are not here: the triggerer observes those.
 */
import type { BuiltinTriggers } from "@tradewind/sdk/builtin-triggers";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type { TriggerHost, TriggerProgram } from "@tradewind/sdk/program";
import { EngineError } from "../service/errors.ts";
import type { BuiltinKind } from "./builtin-kind.ts";

/** Kinds that the triggerer answers by queries of the engine's database or a person through the API, and combinations. */
type OtherKind = `tradewind.${"dagrun" | "externaltask" | "webhook" | "signal" | "approval" | "all" | "any"}`;

const KINDS: Readonly<Record<Exclude<keyof BuiltinTriggers, OtherKind>, () => Promise<BuiltinKind>>> = {
  "tradewind.datetime": async () => (await import("./moment.ts")).dateTimeKind,
  "tradewind.timedelta": async () => (await import("./moment.ts")).timeDeltaKind,
  "tradewind.file": async () => (await import("./file.ts")).fileKind,
  "tradewind.http": async () => (await import("./http.ts")).httpKind,
  "tradewind.sql": async () => (await import("./sql.ts")).sqlKind,
  "tradewind.s3key": async () => (await import("./s3.ts")).s3KeyKind,
  "tradewind.s3prefix": async () => (await import("./s3.ts")).s3PrefixKind,
  "tradewind.process": async () => (await import("./process.ts")).processKind,
  "tradewind.rediskey": async () => (await import("./redis-key.ts")).redisKeyKind,
  "tradewind.redisstream": async () => (await import("./redis-stream.ts")).redisStreamKind,
};

/** The program of this kind; undefined: it does not run, or is unknown. */
export async function builtinTrigger(kind: string): Promise<TriggerProgram | undefined> {
  return (await kindOf(kind))?.program;
}

/** Polls once: returns the event that the trigger would fire with, or undefined. */
export async function checkBuiltin(call: TriggerCall, host: TriggerHost): Promise<Json | undefined> {
  const kind = await kindOf(call.kind);
  if (kind === undefined) {
    throw new EngineError(
      "TRIGGER_NOT_CHECKABLE",
      `"${call.kind}" cannot be polled here: only a triggerer can wait for it. Use the deferred mode.`,
    );
  }
  return kind.check(call.args, host);
}

async function kindOf(id: string): Promise<BuiltinKind | undefined> {
  return Object.hasOwn(KINDS, id) ? KINDS[id as keyof typeof KINDS]() : undefined;
}
