/** Every export of the SDK and of the test package has a doc comment of one sentence, and an example that compiles. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { compile } from "../../packages/sdk/test/compile.ts";
import {
  type ApiSymbol,
  entryPoints,
  examplesBelow,
  examplesIn,
  exportsOf,
  proseIn,
  symbolsIn,
} from "./api-comments.ts";
import { pages, ROOT } from "./guide.ts";

/** Authors import "."; the engine imports the others, whose types need no example. */
const AUTHORS = ".";

const packages = ["sdk", "testing"].map((name) => ({
  name,
  entries: [...entryPoints(name)].map(([entry, file]) => ({
    isForAuthors: entry === AUTHORS,
    symbols: exportsOf(file),
    file,
  })),
}));
const entries = packages.flatMap((each) => each.entries);

function problems({ comment, fields, isValue, name }: ApiSymbol, isForAuthors: boolean): string[] {
  if (comment === null) return [`${name} has no doc comment`];
  const examples = examplesIn(comment).length;
  const needsExample = isForAuthors || isValue;
  return [
    ...(isOneSentence(comment) ? [] : [`${name} needs one sentence: ${proseIn(comment)}`]),
    ...(examples > 1 || (needsExample && examples === 0) ? [`${name} has ${examples} examples`] : []),
    ...[...fields]
      .filter(([, text]) => isForAuthors && !isOneSentence(text))
      .map(([field, text]) => `${name}.${field} needs one sentence: ${proseIn(text)}`),
  ];
}

function isOneSentence(comment: string): boolean {
  const prose = proseIn(comment);
  return /\w.*(\.|\.\.\.)$/.test(prose) && !/[.!?]\)? [A-Z`]/.test(prose.replaceAll(/"[^"]*"|`[^`]*`/g, "x"));
}

/** Names that the examples use without defining them. */
const PROLOGUE = `
import { z } from "zod";
declare function isHoliday(day: Date): boolean;
declare const build: (d: DagBuilder) => void;
declare const d: DagBuilder<{ region: string }>;
declare const ctx: TaskContext;
declare const file: string;
declare const billing: { charge(): Promise<{ declined: boolean; receipt: string }> };
declare function countRows(db: unknown, table: string): number;
declare function fetchRows(): Promise<{ id: number }[]>;
declare function load(rows: unknown, region?: string): number;
declare function loadRows(rows: unknown): number;
declare function notify(text: string): Promise<void>;
declare function publish(): void;
declare const names: Output<string[]>;
declare const regions: Output<string[]>;
declare const tables: string[];
declare const sources: Output<string[]>;
declare const targets: Output<string[]>;
declare function copy(from: string, to: string): void;
declare function train(region: string, size: string): number;
declare function listFiles(): string[];
declare function extract(name: string): { rows: number };
declare function report(of: unknown): string;
declare function createCluster(): Promise<{ id: string; url: string }>;
declare function deleteCluster(id: string): Promise<void>;
declare function crunch(url: string): number;
declare class Copy extends Operator<{ table: string; to: string }, number> { execute(): number }
declare function checkNulls(): void;
declare function checkRanges(): void;
declare function loadInParts(): void;
declare function loadAtOnce(): void;
declare function submit(table: string): Promise<string>;
declare function cancelJob(job: string): Promise<void>;
declare function findJob(id: string): Promise<{ cancelled: boolean; error?: string; result?: { rows: number } }>;
declare function readMails(box: string, abort: AbortSignal): AsyncIterable<{ subject: string; acknowledge(): Promise<void> }>;
declare const sales: Dag;
declare const approvals: Dag;
declare function expect(value: unknown): { toBe(expected: unknown): void };
`;

/** Names that some examples define and others use. */
const SHARED: Record<string, string> = {
  rows: 'const rows = d.task("rows", () => fetchRows());',
  JobDone:
    'class JobDone extends PollTrigger<{ job: string }, { rows: number }> { static id = "x"; poll() { return { rows: 1 }; } }',
  Count: "class Count extends Operator<{ table: string }, number> { override execute() { return 1; } }",
};

/** Imports every export of a package, each name once. */
function importsOf(
  files: readonly { readonly file: string; readonly symbols: readonly ApiSymbol[] }[],
): string {
  const seen = new Set<string>();
  return files
    .map(({ file, symbols }) => {
      const names = symbols.map(({ name }) => name).filter((name) => !seen.has(name));
      for (const name of names) seen.add(name);
      return `import { ${names.join(", ")} } from ${JSON.stringify(file)};`;
    })
    .join("\n");
}

/** A module with each of the examples in a function of its own. */
function moduleOf(examples: readonly string[], imports: string): string {
  const functions = examples.map((code) => {
    const shared = Object.entries(SHARED).filter(
      ([name]) => !new RegExp(`(const|class) ${name}\\b`).test(code),
    );
    const lines = [...shared.map(([, line]) => line), code.replace(/^export default/m, "void")];
    return `void async function () {\n${lines.join("\n")}\n};`;
  });
  return `${imports}${PROLOGUE}${functions.join("\n")}`;
}

describe("doc comments of the public API", () => {
  it("have one sentence and one example per export, and one sentence per field", () => {
    expect(entries.flatMap(({ symbols }) => symbols).length).toBeGreaterThan(300);
    expect(
      entries.flatMap(({ isForAuthors, symbols }) =>
        symbols.flatMap((symbol) => problems(symbol, isForAuthors)),
      ),
    ).toEqual([]);
  });

  it("are checked: each problem is reported", () => {
    const text = `
export type None = string;
/** No example. */
export type NoExample = string;
/**
 * Two sentences. A second one.
 * @example 1;
 */
export function twoSentences() {}
/**
 * Two examples.
 * @example 1;
 * @example 2;
 */
export const twoExamples = 1;
/**
 * A long field.
 * @example 1;
 */
export interface Options {
  /** A field. It has a second sentence. */
  readonly field?: string;
}
`;
    const found = (isForAuthors: boolean) =>
      symbolsIn("x.ts", text).flatMap((each) => problems(each, isForAuthors));
    const always = [
      "twoSentences needs one sentence: Two sentences. A second one.",
      "twoExamples has 2 examples",
    ];
    expect(found(true)).toEqual([
      "None has no doc comment",
      "NoExample has 0 examples",
      ...always,
      "Options.field needs one sentence: A field. It has a second sentence.",
    ]);
    expect(found(false)).toEqual(["None has no doc comment", ...always]);
  });

  it("link to existing guides", () => {
    const links = entries
      .flatMap(({ symbols }) => symbols)
      .flatMap(({ comment }) =>
        [...(comment ?? "").matchAll(/^@see (docs\/[^\s#]+)/gm)].map(([, page]) => page!),
      );
    expect(links.length).toBeGreaterThan(10);
    expect(links.filter((page) => !pages().includes(page))).toEqual([]);
  });

  it("have examples that compile", async () => {
    const sdk = importsOf(packages[0]!.entries);
    const both = importsOf(entries.filter(({ isForAuthors }) => isForAuthors));
    const found = packages.flatMap(({ name }) =>
      [...examplesBelow(join(ROOT, "packages", name, "src"))].map(([file, examples]) => ({
        module: `${name}-${file.replace(".ts", "").replaceAll(/[/\\]/g, "-")}`,
        imports: name === "sdk" ? sdk : both,
        examples,
      })),
    );
    expect(found.flatMap(({ examples }) => examples).length).toBeGreaterThan(300);
    const modules = found
      .filter(({ examples }) => examples.length > 0)
      .map(({ examples, imports, module }) => [module, moduleOf(examples, imports)] as const);
    const { errors } = await compile({
      ...Object.fromEntries(modules),
      control: moduleOf(['d.task("x", () => new Date());'], sdk),
    });
    expect(errors.get("control")).toMatch(/NotJson/);
    const failed = modules.filter(([module]) => errors.has(module));
    expect(failed.map(([module]) => `${module}: ${errors.get(module)}`)).toEqual([]);
  }, 120_000);
});
