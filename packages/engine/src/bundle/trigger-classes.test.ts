/** Trigger classes that cannot be found by their ids are import errors. */
import { expect, it } from "vitest";
import { testDatabase } from "../../test/support/test-database.ts";
import { FolderFixture, importErrors, processorOn, versions } from "./dag-folder-fixture.ts";

const trigger = (name: string, id: string, base = "Trigger") =>
  `class ${name} extends ${base} { ${id} async *run() { yield null; } }`;

const file = (dagId: string, body: string, first = "") => `
  import { dag, Trigger } from "tradewind";
  ${first}
  export default dag("${dagId}", (d) => { ${body} });`;

it("rejects two classes with one id, a class without an id, and a class inside a function", async () => {
  const { db } = await testDatabase();
  const folder = new FolderFixture();
  await folder.write({
    "twice.ts": file(
      "twice",
      `d.trigger("a", new A()); d.trigger("b", new B());`,
      trigger("A", `static id = "acme.same";`) + trigger("B", `static id = "acme.same";`),
    ),
    "unnamed.ts": file("unnamed", `d.task("t", (_, ctx) => ctx.until("u", new U()));`, trigger("U", "")),
    "nested.ts": file("nested", `${trigger("N", `static id = "acme.nested";`)} d.trigger("n", new N());`),
    "fine.ts": file(
      "fine",
      `d.trigger("a", new A());`,
      `${trigger("Base", "")} ${trigger("A", `static id = "acme.fine";`, "Base")}`,
    ),
  });
  await processorOn(db, folder).runOnce();
  expect(await versions(db)).toEqual({ fine: 1 });
  expect(await importErrors(db)).toEqual({
    "twice.ts": expect.stringMatching(/classes A and B have the same static id "acme\.same".*DAG_REFUSED/s),
    "unnamed.ts": expect.stringMatching(/trigger class U has no static id.*DAG_REFUSED/s),
    "nested.ts": expect.stringMatching(/task "n": .*"acme\.nested" is inside a function.*DAG_REFUSED/s),
  });
});
