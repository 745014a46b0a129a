/** The classes that a trigger runner finds in a bundle: those of its top level. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { CLASSES_EXPORT } from "@tradewind/sdk/program";
import { expect, it } from "vitest";
import { buildArtefact } from "./bundler/artefact.ts";
import { dagText, FolderFixture } from "./dag-folder-fixture.ts";

/** Bundles `dag.ts`, imports the artefact, and returns name and kind of each listed class. */
async function classesOf(files: Readonly<Record<string, string>>): Promise<string[] | undefined> {
  const folder = new FolderFixture();
  await folder.write(files);
  const source = { file: "dag.ts", path: join(folder.path, "dag.ts"), text: files["dag.ts"] ?? "" };
  const { hash, banner, sharedChunks, body } = await buildArtefact(folder.path, source, 1);
  const path = join(folder.path, `${hash}.mjs`);
  writeFileSync(path, banner + sharedChunks.map(({ code }) => code).join("") + body);
  const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  const list = module[CLASSES_EXPORT] as (() => unknown[]) | undefined;
  return list?.().flatMap((each) => {
    if (typeof each !== "function") return [];
    const { kind } = each as unknown as { readonly kind?: string };
    return [kind === undefined ? each.name : `${each.name} ${kind}`];
  });
}

it("lists a class that is not exported, and one from a local module", async () => {
  const found = await classesOf({
    "dag.ts": `import { Far } from "./lib/far.ts";
class Near { static kind = "near"; }
export const use = () => [new Near(), new Far()];
${dagText("a")}`,
    "lib/far.ts": `class Base {}\nexport class Far extends Base { static kind = "far"; }`,
  });
  expect(found).toEqual(["Base", "Far far", "Near near"]);
});

it("lists a class from a package", async () => {
  const found = await classesOf({
    "dag.ts": `import { Queue } from "some-triggers";\nexport const use = () => new Queue();\n${dagText("a")}`,
    "node_modules/some-triggers/package.json": `{ "name": "some-triggers", "type": "module", "exports": "./index.js" }`,
    "node_modules/some-triggers/index.js": `export class Queue { static kind = "queue"; }`,
  });
  expect(found).toEqual(["Queue queue"]);
});

it("lists both of two classes with one name", async () => {
  const found = await classesOf({
    "dag.ts": `import { make } from "./other.ts";
class Same { static kind = "here"; }
export const use = () => [new Same(), make()];
${dagText("a")}`,
    "other.ts": `class Same { static kind = "there"; }\nexport const make = () => new Same();`,
  });
  expect(found).toEqual(["Same there", "Same here"]);
});

it("lists classes in every notation, and in modules that are evaluated late", async () => {
  const found = await classesOf({
    "dag.ts": `import { Late } from "./late.ts";
const Made = class { static kind = "made"; };
class Private { static #secret = 1; static kind = "private"; static me = Private; read() { return Private.#secret; } }
export default class Exported { static kind = "exported"; }
const text = \`
class Quoted extends Nothing {}
\`;
function local() { class Inner {} return Inner; }
export const use = () => [Late, Made, Private, text, local()];`,
    "late.ts": `await null;\nexport class Late { static kind = "late"; }\nexport const again = () => import("./late.ts");`,
  });
  expect(found).toEqual(["Late late", "Made made", "Private private", "Exported exported"]);
});

it("adds nothing to a bundle without classes", async () => {
  const folder = new FolderFixture();
  await folder.write({ "dag.ts": dagText("a") });
  const source = { file: "dag.ts", path: join(folder.path, "dag.ts"), text: dagText("a") };
  expect((await buildArtefact(folder.path, source, 1)).body).not.toContain(CLASSES_EXPORT);
});
