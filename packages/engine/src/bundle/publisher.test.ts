import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { manifestOf } from "../../test/api/installation.ts";
import { testDatabase } from "../../test/support/test-database.ts";
import { artefactHash } from "../code/artefact-hash.ts";
import type { Bundled } from "../code/bundled.ts";
import { adhoc } from "../store/database/database.ts";
import { importErrors } from "./dag-folder-fixture.ts";
import { Publisher } from "./publisher.ts";

it("rejects a bundle whose child names a file outside of its folder, and stores the others", async () => {
  const test = await testDatabase();
  const folder = await mkdtemp(join(tmpdir(), "tw-publisher-"));
  onTestFinished(async () => {
    await rm(folder, { recursive: true });
    await test.close();
  });
  const secret = join(folder, "secret.key");
  await writeFile(secret, "a secret of the engine");
  const shared = join(folder, "sharedChunk.txt");
  await writeFile(shared, "let sdk = 1;\n");
  const refused: string[] = [];
  const publisher = new Publisher({
    database: test.db,
    isPausedAtCreation: false,
    plan: () => null,
    onStored: () => {},
    onRefused: (file) => refused.push(file),
  });
  const body = "export default sdk;\n";
  const rest = {
    kind: "bundled",
    installed: [],
    files: [],
    banner: "",
    body,
    map: "{}",
    source: "",
  } as const;
  const settled = { unexported: [], inputs: [], settled: true };
  const sharedChunks = (path: string) => [{ name: "sdk", path }];
  const hash = artefactHash(`let sdk = 1;\n${body}`);
  const add = (name: string, path: string) => {
    const manifests = [manifestOf(name, [{ taskId: "a" }])];
    publisher.add(`${name}.ts`, {
      ...rest,
      ...settled,
      hash,
      manifests,
      sharedChunks: sharedChunks(path),
    } as Bundled);
  };
  add("honest", shared);
  add("liar", secret);
  await publisher.drain();
  expect(refused).toEqual(["liar.ts"]);
  expect((await importErrors(test.db))["liar.ts"]).toContain("[BUNDLE_CORRUPT]");
  const sharedChunksStored = await test.db.rows<{ code: string }>(adhoc("SELECT code FROM shared_chunk"));
  expect(sharedChunksStored).toEqual([{ code: "let sdk = 1;\n" }]);
});
