import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { withGeneratedParts } from "../../scripts/generate-docs.ts";
import { blocksOf, pages, proseOf, ROOT, textOf } from "./guide.ts";

describe("README", () => {
  it("shows examples/hello.ts unchanged", () => {
    const [first] = blocksOf("README.md").filter(({ language }) => language === "ts");
    expect(first?.text).toBe(readFileSync(join(ROOT, "examples/hello.ts"), "utf8"));
  });

  it("shows a start that loads all DAGs of examples/", () => {
    const [shown] = blocksOf("README.md").filter(({ language }) => language === "text");
    const loaded = [
      ...(shown?.text ?? "").matchAll(/^ {2}\d+ (?:more )?DAGs? loaded: (.*?)(?: \((\d+) in all\))?$/gm),
    ];
    const names = globSync("*.ts", { cwd: join(ROOT, "examples") })
      .filter((name) => !name.endsWith(".test.ts"))
      .map((name) => name.replace(".ts", ""));
    expect(loaded.flatMap(([, list]) => (list ?? "").split(", ")).sort()).toEqual(names.sort());
    expect(Number(loaded.at(-1)?.[2])).toBe(names.length);
  });

  it("has the DAG and both commands above the fold, and CI runs the second", () => {
    const fold = textOf("README.md").split("\n").slice(0, 30).join("\n");
    expect(fold).toContain("npm install && npm start");
    expect(fold).toContain("npm install && npm test");
    expect(readFileSync(join(ROOT, ".ci/run"), "utf8")).toContain("npm install && npm test");
  });
});

describe("generated parts", () => {
  it("match their generated text: npm run docs", () => {
    const text = textOf("docs/architecture.md");
    expect(text).toBe(withGeneratedParts(text));
    expect(text).toContain("  scheduled --> queued: ");
    expect(text).toContain("  running --> success: ");
  });

  it("are detected if they differ", () => {
    const text = textOf("docs/architecture.md");
    expect(withGeneratedParts(text.replace("  scheduled --> queued: ", "  scheduled --> running: "))).toBe(
      text,
    );
    expect(() => withGeneratedParts(text.replace("<!-- generated: run states -->", ""))).toThrow(
      "run states",
    );
  });
});

describe("links", () => {
  for (const page of pages()) {
    it(`of ${page} have existing targets`, () => {
      const links = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link ?? "");
      expect(
        links.filter((link) => !/^https?:/.test(link)).filter((link) => !leadsSomewhere(page, link)),
      ).toEqual([]);
    });
  }

  it("reach every page", () => {
    const linked = new Set(
      pages().flatMap((page) =>
        [...proseOf(page).matchAll(/\]\(([^)#\s]+)/g)].map(([, link]) =>
          relative(ROOT, join(ROOT, dirname(page), link ?? "")),
        ),
      ),
    );
    expect(pages().filter((page) => !linked.has(page) && page !== "README.md")).toEqual([]);
  });
});

function leadsSomewhere(page: string, link: string): boolean {
  const [path, anchor] = link.split("#");
  const file = path ? join(ROOT, dirname(page), path) : join(ROOT, page);
  if (!existsSync(file)) return false;
  return anchor === undefined || anchorsOf(readFileSync(file, "utf8")).has(anchor);
}

/** The anchors that GitHub derives from headings. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading ?? "");
  const anchor = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(" ", "-");
  return new Set(headings.map(anchor));
}
