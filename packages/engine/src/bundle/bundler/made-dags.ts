/**
 * The DAGs that a file makes while it is imported. One that it makes and does not export gives no error and no DAG, so
 * somebody has to say so; to find it, a child's SDK notes each call of `dag()`.
 */
interface MadeDag {
  readonly id: string;
  /** Where it was made: formatted only when somebody reads it. */
  readonly trace: Error;
}

let made: MadeDag[] = [];

/** The SDK with a `dag` that notes what it returns; everything else is the SDK's own. */
export function noting(sdk: unknown): unknown {
  const dag = (sdk as { dag?: unknown } | null)?.dag;
  if (typeof dag !== "function") return sdk;
  const noted = (...args: unknown[]): unknown => {
    const result = Reflect.apply(dag, undefined, args) as { id?: unknown } | null;
    if (typeof result?.id === "string") made.push({ id: result.id, trace: new Error("made here") });
    return result;
  };
  return Object.create(sdk as object, { dag: { value: noted, enumerable: true } });
}

/** What was made since the last call. */
export function takeMadeDags(): readonly MadeDag[] {
  const taken = made;
  made = [];
  return taken;
}
