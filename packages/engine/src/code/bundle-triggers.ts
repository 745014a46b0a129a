/** The kinds of triggers that a bundle defines. For processes that load only bundles. */
import type {
  CLASSES_EXPORT as ClassesExport,
  TriggerProgram,
  TRIGGER as TriggerSymbol,
} from "@tradewind/sdk/program";

/** By their registered names: such a process must not load the SDK. */
const TRIGGER = Symbol.for("tradewind.trigger") as typeof TriggerSymbol;
const CLASSES: typeof ClassesExport = "tradewind$classes";

/** By id. */
export function triggersOf(module: Readonly<Record<string, unknown>>): ReadonlyMap<string, TriggerProgram> {
  const classes = module[CLASSES];
  const listed = typeof classes === "function" ? (classes() as unknown[]) : [];
  const programs = new Map<string, TriggerProgram>();
  for (const each of [...listed, ...Object.values(module)]) {
    const program = programOf(each);
    if (program !== null && !programs.has(program.id)) programs.set(program.id, program);
  }
  return programs;
}

function programOf(value: unknown): TriggerProgram | null {
  if (typeof value !== "function") return null;
  try {
    return (value as unknown as { readonly [TRIGGER]?: TriggerProgram })[TRIGGER] ?? null;
  } catch {
    // A class that cannot be a trigger by itself: the base of others.
    return null;
  }
}
