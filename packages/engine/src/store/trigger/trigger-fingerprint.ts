/** The identity of waits: waits with equal fingerprints share one row of `trigger`, and one poll. */
import { createHash } from "node:crypto";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";

/** `bundleHash` null: built in. A schedule's trigger is not shared: a trigger with waits is deleted when it fires. */
export function triggerFingerprint(
  call: Pick<TriggerCall, "kind" | "args" | "queue" | "replicas">,
  bundleHash: string | null,
  dagId?: string,
): Buffer {
  const parts: Json[] = [call.kind, call.args, bundleHash, call.queue, call.replicas];
  if (dagId !== undefined) parts.push(dagId);
  return createHash("sha256").update(canonicalJson(parts)).digest();
}

/** The same text for equal values, independent of the order of keys. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item as Json)}`);
  return `{${members.join(",")}}`;
}
