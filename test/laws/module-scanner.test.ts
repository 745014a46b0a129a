import { describe, expect, it } from "vitest";
import { importsOf, tokens } from "./module-scanner.ts";

const imports = (source: string) =>
  importsOf(tokens(source)).map(({ specifier, isTypeOnly, isDynamic }) => [
    specifier,
    isDynamic ? "dynamic" : isTypeOnly ? "type" : "value",
  ]);

describe("importsOf", () => {
  it("distinguishes imports of types from imports of values", () => {
    expect(imports('import type { A } from "./a.ts";')).toEqual([["./a.ts", "type"]]);
    expect(imports('import { a } from "./a.ts";')).toEqual([["./a.ts", "value"]]);
    // With verbatimModuleSyntax the module itself is still loaded.
    expect(imports('import { type A } from "./a.ts";')).toEqual([["./a.ts", "value"]]);
    expect(imports('import type from "./a.ts";')).toEqual([["./a.ts", "value"]]);
    expect(imports('import "./a.ts";\nimport b, * as c from "./b.ts";')).toEqual([
      ["./a.ts", "value"],
      ["./b.ts", "value"],
    ]);
  });

  it("finds re-exports and skips exports", () => {
    const source =
      'export * from "./a.ts"; export { b } from "./b.ts"; export type { C } from "./c.ts"; export { d }; export const e = "x";';
    expect(imports(source)).toEqual([
      ["./a.ts", "value"],
      ["./b.ts", "value"],
      ["./c.ts", "type"],
    ]);
  });

  it("finds dynamic imports, and whether their target is known", () => {
    expect(imports('await import("./a.ts")')).toEqual([["./a.ts", "dynamic"]]);
    expect(imports("await import(url)")).toEqual([[null, "dynamic"]]);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    expect(imports("await import(`./${name}.ts`)")).toEqual([[null, "dynamic"]]);
    expect(imports('type E = typeof import("./a.ts")')).toEqual([["./a.ts", "type"]]);
    expect(imports('require("./a.cjs")')).toEqual([["./a.cjs", "dynamic"]]);
    expect(imports("import.meta.url; that.import(x)")).toEqual([]);
  });

  it("ignores comments, strings and regular expressions", () => {
    const source = [
      '// import "./no.ts"',
      '/* import "./no.ts" */',
      "const a = 'import \"./no.ts\"';",
      'const b = /import "[/]no.ts"/g;',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
      'const c = `import "./no.ts" ${await import("./yes.ts")} import "./no.ts"`;',
      "const d = 1 / 2; // 3 /",
      'import "./last.ts";',
    ].join("\n");
    expect(imports(source)).toEqual([
      ["./yes.ts", "dynamic"],
      ["./last.ts", "value"],
    ]);
  });

  it("returns the line", () => {
    const [found] = importsOf(tokens('/*\n\n*/\n\nimport "./a.ts";'));
    expect(found?.line).toBe(5);
  });
});
