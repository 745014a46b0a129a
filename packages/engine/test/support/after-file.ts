/**
 * What the modules of this folder do after each test file, and after each test: close what it has opened.
 *
 * Not by hooks of their own: a worker runs many files one after the other and loads a module once, so such a hook would
 * hold for the first file alone. The hooks are in file-hooks.ts, which runs again for each file.
 */
type Work = () => Promise<unknown>;

const works: { readonly file: Work[]; readonly test: Work[] } = { file: [], test: [] };

/** The last registered is done first: a module closes before those that it is built on. */
export function afterFile(work: Work): void {
  works.file.unshift(work);
}

export function afterTest(work: Work): void {
  works.test.unshift(work);
}

/** All of it is done, whatever fails on the way. */
export async function doAfter(what: "file" | "test"): Promise<void> {
  const errors: unknown[] = [];
  for (const work of works[what]) await work().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors);
}
