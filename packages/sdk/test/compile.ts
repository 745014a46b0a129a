/** Runs the real compiler on snippets to check what an author sees. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));

export interface Compiled {
  /** Error messages by snippet name. */
  readonly errors: ReadonlyMap<string, string>;
  readonly instantiations: number;
}

/** Type-checks each snippet as a file of its own, all in one compiler run. */
export async function compile(snippets: Readonly<Record<string, string>>): Promise<Compiled> {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-types-"));
  try {
    await Promise.all(
      Object.entries(snippets).map(([name, code]) =>
        writeFile(join(folder, `${name}.ts`), `${code}\nexport {};\n`),
      ),
    );
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config()));
    const printed = await run(["-p", folder, "--extendedDiagnostics", "--pretty", "false"]);
    const errors = new Map<string, string>();
    let last: string | undefined;
    for (const line of printed.split("\n")) {
      const found = /([^/\\]+)\.ts\(\d+,\d+\): error TS\d+: (.*)$/.exec(line);
      if (found) last = found[1]!;
      const text = found ? found[2]! : line.startsWith("  ") ? line : undefined;
      if (text === undefined || last === undefined) continue;
      errors.set(last, `${errors.get(last) ?? ""}${text}\n`);
    }
    const count = /Instantiations:\s+(\d+)/.exec(printed);
    if (!count) throw new Error(`the compiler did not finish:\n${printed}`);
    return { errors, instantiations: Number(count[1]) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function config() {
  return {
    compilerOptions: {
      target: "es2024",
      module: "nodenext",
      strict: true,
      noUncheckedIndexedAccess: true,
      allowImportingTsExtensions: true,
      customConditions: ["source"],
      skipLibCheck: true,
      noEmit: true,
      noErrorTruncation: true,
      types: ["node"],
      typeRoots: [join(root, "node_modules/@types")],
      paths: {
        tradewind: [join(root, "packages/sdk/src/index.ts")],
        zod: [join(root, "node_modules/zod/index.d.ts")],
      },
    },
  };
}

function run(args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    // A rejected snippet exits with code 2: the text decides.
    execFile(
      process.execPath,
      [join(root, "node_modules/typescript/bin/tsc"), ...args],
      { maxBuffer: 64 * 1024 * 1024 },
      (_, stdout, stderr) => resolve(stdout + stderr),
    );
  });
}
