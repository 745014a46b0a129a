/** Outputs as the API shows them: of large ones the value, as long as it is not too large to be shown; else what is known. */
import type { Json } from "@tradewind/sdk/manifest";
import { LargeValue } from "../../model/index.ts";
import type { LargeOutputs, OpenText } from "../../output/large-outputs.ts";
import { EngineError } from "../../service/errors.ts";
import { Problem } from "../server/problem.ts";

/** Bytes of JSON. An answer is put together in memory. */
const MOST_SHOWN = 16 * 1024 * 1024;

export type OutputReader = Pick<LargeOutputs, "open" | "read" | "requireThere">;

export interface ShownObject {
  readonly store: string;
  readonly key: string;
  readonly bytes: number;
  readonly items: number | null;
}

/** Null in place of a value that is not shown; it must be there all the same. */
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

/** As JSON, however large it is: proven before anything of it is sent. */
export async function outputText(
  value: Json | LargeValue,
  outputs: OutputReader | undefined,
): Promise<OpenText> {
  if (!(value instanceof LargeValue)) return { pieces: () => whole(value), close() {} };
  if (outputs === undefined)
    throw new Problem(502, "OUTPUT_UNREADABLE", "This server has no store of large outputs.");
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

/** Of a run's end, where one that cannot be read must not hide the others. All of them together are shown up to the limit. */
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
