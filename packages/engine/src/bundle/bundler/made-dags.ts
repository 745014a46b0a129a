/**
 * The DAGs that a file creates while it is imported. A DAG that the file creates and does not export would be missing
 * without an error. To find it, the SDK in the child process records each call of `dag()`, with its error if it throws.
 */
import { PROGRAM } from "@tradewind/sdk/program";

interface MadeDag {
  readonly id: string;
  /** Where it was created: formatted only on access. */
  readonly trace: Error;
}

let made: MadeDag[] = [];
let refused: unknown[] = [];
let goesOn = false;

/** The SDK with a `dag` that records its results; everything else is the SDK's own. */
export function noting(sdk: unknown): unknown {
  const dag = (sdk as { dag?: unknown } | null)?.dag;
  if (typeof dag !== "function") return sdk;
  const noted = (...args: unknown[]): unknown => {
    try {
      const result = Reflect.apply(dag, undefined, args) as { id?: unknown } | null;
      if (typeof result?.id === "string") made.push({ id: result.id, trace: new Error("made here") });
      return result;
    } catch (error) {
      // Without a code and after other errors, it may be caused by the stand-in for a rejected DAG.
      if (refused.length === 0 || isCoded(error)) refused.push(error);
      if (!goesOn) throw error;
      return { kind: "dag", id: args[0], [PROGRAM]: null };
    }
  };
  return Object.create(sdk as object, { dag: { value: noted, enumerable: true } });
}

function isCoded(error: unknown): boolean {
  return typeof (error as { code?: unknown } | null)?.code === "string";
}

/** The DAGs created since the last call. */
export function drainMadeDags(): readonly MadeDag[] {
  const taken = made;
  made = [];
  refused = [];
  return taken;
}

/** True if an error that ended an import came from a `dag()`. */
export function isOfRefusedDag(error: unknown): boolean {
  return refused.includes(error);
}

/** The errors of all DAGs that `load` creates: the first one does not end it. Other errors may be caused by them. */
export async function errorsOfAllDags(load: () => Promise<unknown>): Promise<readonly unknown[]> {
  refused = [];
  goesOn = true;
  try {
    await load();
  } catch {
    // The file has the errors of its DAGs.
  } finally {
    goesOn = false;
  }
  return refused;
}
