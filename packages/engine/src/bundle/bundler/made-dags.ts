/**
 * The DAGs that a file makes while it is imported. A DAG that the file makes and does not export would be missing without an
 * error. To find it, the SDK in the child process records each call of `dag()`, with the error if the call is rejected.
 */
import { PROGRAM } from "@tradewind/sdk/program";

interface MadeDag {
  readonly id: string;
  /** Where it was made: formatted only when somebody reads it. */
  readonly trace: Error;
}

let made: MadeDag[] = [];
let refused: unknown[] = [];
let goesOn = false;

/** The SDK with a `dag` that notes what it returns; everything else is the SDK's own. */
export function noting(sdk: unknown): unknown {
  const dag = (sdk as { dag?: unknown } | null)?.dag;
  if (typeof dag !== "function") return sdk;
  const noted = (...args: unknown[]): unknown => {
    try {
      const result = Reflect.apply(dag, undefined, args) as { id?: unknown } | null;
      if (typeof result?.id === "string") made.push({ id: result.id, trace: new Error("made here") });
      return result;
    } catch (error) {
      // Without a code, and after others, it may follow from the stand-in for one of them.
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

/** What was made since the last call. */
export function takeMadeDags(): readonly MadeDag[] {
  const taken = made;
  made = [];
  refused = [];
  return taken;
}

/** Whether an error that ended an import is that of a `dag()`. */
export function isOfRefusedDag(error: unknown): boolean {
  return refused.includes(error);
}

/** The errors of all DAGs that `load` makes: the first does not end it. What else it throws may follow from them. */
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
