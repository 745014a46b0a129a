/** Large inputs and outputs in the process of a task, transferred in pieces. */
import type { Json } from "@tradewind/sdk/manifest";
import { INLINE_ONLY, type OutputLimits } from "../../output/output-limits.ts";
import { type JobOutcome, PIECE_LENGTH, type PieceTarget } from "../attempt/protocol.ts";

/** The limits that the supervisor passed as arguments. */
export function limitsOf(argv: readonly string[]): OutputLimits {
  const [inline = 0, most = 0] = argv.slice(2, 4).map(Number);
  return inline > 0 && most > 0 ? { inline, most } : INLINE_ONLY;
}

export class LargeValues {
  /** The received pieces, by slot. */
  readonly #parts = new Map<number, string[]>();

  add(slot: number, text: string): void {
    const parts = this.#parts.get(slot);
    if (parts) parts.push(text);
    else this.#parts.set(slot, [text]);
  }

  /** Puts the large values of a message in their places. */
  within<M extends object>(message: M & { readonly large?: readonly PieceTarget[] }): M {
    const { large } = message;
    if (large === undefined) return message;
    // Each place gets its own copy, as with values that are part of the message.
    for (const { at, slot } of large) put(message, at, JSON.parse((this.#parts.get(slot) ?? []).join("")));
    this.drop(message);
    return message;
  }

  /** Discards the pieces of a message without a receiver. */
  drop({ large = [] }: { readonly large?: readonly PieceTarget[] }): void {
    for (const { slot } of large) this.#parts.delete(slot);
  }
}

function put(target: unknown, at: PieceTarget["at"], value: Json): void {
  let place = target as Record<string | number, unknown>;
  for (const step of at.slice(0, -1)) place = place[step] as Record<string | number, unknown>;
  place[at.at(-1)!] = value;
}

/** Splits a large output off an outcome: `text` is sent before the outcome. null: the outcome is sent as it is. */
export function sizeUp(
  outcome: JobOutcome,
  { inline, most }: OutputLimits,
): { readonly outcome: JobOutcome; readonly text: string | null } {
  if (!("kind" in outcome) || outcome.kind !== "success") return { outcome, text: null };
  const { output } = outcome;
  if (typeof output !== "string" && (typeof output !== "object" || output === null))
    return { outcome, text: null };
  // Short enough with any escaping.
  if (typeof output === "string" && 6 * output.length < inline) return { outcome, text: null };
  let text: string;
  try {
    text = JSON.stringify(output) ?? "";
  } catch (error) {
    // Not JSON: sending it fails with that error. Or longer than the longest string.
    const isEndless = error instanceof RangeError && /string length/.test(error.message);
    return { outcome: isEndless ? tooLarge("more than 500 MB", most) : outcome, text: null };
  }
  if (text.length <= inline) return { outcome, text: null };
  const bytes = Buffer.byteLength(text);
  if (bytes > most) return { outcome: tooLarge(`${bytes} bytes`, most), text: null };
  return { outcome: { ...outcome, output: undefined }, text };
}

function tooLarge(size: string, most: number): JobOutcome {
  const message = `The task's output is ${size} of JSON, and ${most} bytes are the limit. Raise TRADEWIND_OUTPUT_LIMIT, or store it elsewhere and return where it is.`;
  return {
    kind: "failed",
    error: { name: "Error", message, stack: null, code: "TASK_OUTPUT_TOO_LARGE" },
    retry: false,
  };
}

/** Does not split surrogate pairs. */
export function* piecesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PIECE_LENGTH, text.length);
    if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1]!)) to--;
    yield text.slice(from, to);
    from = to;
  }
}
