// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these texts are source code
import { expect, it } from "vitest";
import { ownPaths } from "./own-paths.ts";

/** The paths found; a partial path ends with "*". */
const found = (text: string) =>
  ownPaths(text).map(({ isPartial, path }) => `${path}${isPartial ? "/*" : ""}`);

it.each([
  [`new URL("./q.sql", import.meta.url)`, ["q.sql"]],
  [`readFile(new URL('../sql/q.sql?raw', import.meta.url), "utf8")`, ["../sql/q.sql"]],
  ["new URL(`./q.sql`, import.meta.url,)", ["q.sql"]],
  [`new URL("./sql/", import.meta.url)`, ["sql"]],
  ["new URL(`./sql/${name}.sql`, import.meta.url)", ["sql/*"]],
  [`join(import.meta.dirname, "q.sql")`, ["q.sql"]],
  [`path.resolve(import.meta.dirname, "..", "sql", "q.sql",)`, ["../sql/q.sql"]],
  [`join(import.meta.dirname, "sql", names[f(1, 2)], "x.sql")`, ["sql/*"]],
  ["join(import.meta.dirname, 'sql', `${name}.sql`)", ["sql/*"]],
  ["`${import.meta.dirname}/q.sql`", ["q.sql"]],
  ["`${import.meta.dirname}/sql/${name}.sql`", ["sql/*"]],
  [`import.meta.dirname + "/q.sql"`, ["q.sql"]],
  [`import.meta.dirname + "/sql/" + name`, ["sql/*"]],
  [`const here = dirname(fileURLToPath(import.meta.url)); read(join(here, "q.sql"))`, ["q.sql"]],
  [`const __dirname = path.dirname(url.fileURLToPath(import.meta.url)); join(__dirname, "q.sql")`, ["q.sql"]],
  [`const here = new URL(".", import.meta.url); new URL("q.sql", here)`, ["q.sql"]],
  [`const SQL = join(import.meta.dirname, "sql"); join(SQL, name)`, ["sql", "sql/*"]],
  [`join(__dirname, "q.sql")`, ["q.sql"]],
  [`require("path").join(__dirname, "q.sql")`, ["q.sql"]],
  ["log(`at ${join(import.meta.dirname, 'q.sql')}`)", ["q.sql"]],
  [`const a = /["'/]/.test(x) / 2; join(import.meta.dirname, "q.sql")`, ["q.sql"]],
  [`const read = (name: string) => join(import.meta.dirname, name)`, []],
  [`// join(import.meta.dirname, "no.sql")\n"join(import.meta.dirname, 'no')"; import.meta.dirname`, []],
  [`new URL("https://example.com", import.meta.url); new URL("/x", import.meta.url)`, []],
  [`createRequire(import.meta.url); new URL("..", import.meta.url); join(import.meta.dirname, "..")`, []],
  [`other.join(cwd, "no.sql"); join(tmpdir(), "no"); import.meta.url === url`, []],
])("finds in %s", (text, paths) => {
  expect(found(text)).toEqual(paths);
});

it("returns the position of an expression", () => {
  const text = `// first\nconst x = join(import.meta.dirname, "q.sql");`;
  expect(ownPaths(text)[0]?.at).toBe(text.indexOf("join"));
});
