/** Outputs in API responses: large values are included up to a limit, above it only their metadata. */
import type { Json } from "@tradewind/sdk/manifest";
import { LargeValue } from "../../model/index.ts";
import type { LargeOutputs, OpenText } from "../../output/large-outputs.ts";
import { EngineError } from "../../service/errors.ts";
import { Problem } from "../server/problem.ts";

/** Bytes of JSON. A response is built in memory. */
const MOST_SHOWN = 16 * 1024 * 1024;

export type OutputReader = Pick<LargeOutputs, "open" | "read" | "requireThere">;

export interface ShownObject {
  readonly store: string;
  readonly key: string;
  readonly bytes: number;
  readonly items: number | null;
}

/** Null for a value that is too large; its object must still exist. */
export async function shownOutput(
  value: Json | LargeValue,
  outputs: OutputReader | undefined,
): Promise<{ readonly value: Json; readonly object?: ShownObject }> {
  if (!(value instanceof LargeValue)) return { value };
  const { bytes, items, key, store } = value.reference;
  const object = { store, key, bytes, items };
  if (outputs === undefined) return { value: null, object };
  return await reading(async () => {
    if (bytes <= MOST_SHOWN) return { value: await outputs.read(value), object };
    await outputs.requireThere(value);
    return { value: null, object };
  });
}

/** The output as JSON of any size, verified before the first byte is sent. */
export async function outputText(
  value: Json | LargeValue,
  outputs: OutputReader | undefined,
): Promise<OpenText> {
  if (!(value instanceof LargeValue)) return { pieces: () => whole(value), close() {} };
  if (outputs === undefined)
    throw new Problem(502, "OUTPUT_UNREADABLE", "This server has no store for large outputs.");
  return await reading(() => outputs.open(value));
}

async function* whole(value: Json): AsyncGenerator<string> {
  yield JSON.stringify(value);
}

async function reading<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new Problem(502, error.code, error.message);
  }
}

/** For the end of a run: an unreadable output must not hide the others. The limit applies to all together. */
export async function shownOutputs(
  values: readonly (Json | LargeValue)[],
  outputs: OutputReader | undefined,
): Promise<Json[]> {
  let left = MOST_SHOWN;
  const shown: Json[] = [];
  for (const value of values) {
    if (value instanceof LargeValue) left -= value.reference.bytes;
    if (value instanceof LargeValue && left < 0) shown.push(null);
    else
      shown.push(
        await shownOutput(value, outputs).then(
          ({ value: found }) => found,
          () => null,
        ),
      );
  }
  return shown;
}
