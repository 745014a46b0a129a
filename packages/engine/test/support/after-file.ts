/**
 * Cleanup of the modules of this folder after each test file and each test: closes what they opened.
 *
 * The modules have no hooks of their own: a worker runs many files in sequence and loads a module once, so such a hook would
 * apply to the first file only. The hooks are in file-hooks.ts, which runs again for each file.
 */
type Work = () => Promise<unknown>;

const works: { readonly file: Work[]; readonly test: Work[] } = { file: [], test: [] };

/** Runs in reverse order of registration: a module closes before the modules it depends on. */
export function afterFile(work: Work): void {
  works.file.unshift(work);
}

export function afterTest(work: Work): void {
  works.test.unshift(work);
}

/** Runs all of them, even if some fail. */
export async function doAfter(what: "file" | "test"): Promise<void> {
  const errors: unknown[] = [];
  for (const work of works[what]) await work().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors);
}
