/** `tasks output`, and the messages if there is none, against a real server with a real store. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createApi } from "../../engine/src/api/server/api.ts";
import type { LargeOutputs } from "../../engine/src/output/large-outputs.ts";
import { createLargeOutputs } from "../../engine/src/process/parts/large-outputs.ts";
import { resolveConfig } from "../../engine/src/service/config.ts";
import { Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { runCaptured } from "./support/captured-host.ts";

const ATTEMPT = "00000000-0000-4000-8000-000000000001";
/** Larger than the API returns in one response. */
const TEXT = JSON.stringify(Array.from({ length: 17 }, () => "wörter 😀 ".repeat(80_000)));

let server: Installation;
let app: Awaited<ReturnType<typeof createApi>>;
let outputs: LargeOutputs;
let home: string;
let url: string;
let object: string;
const tw = (...argv: string[]) =>
  runCaptured(argv, { env: { TRADEWIND_URL: url, TRADEWIND_TOKEN: server.token } });
const output = (...argv: string[]) => tw("tasks", "output", "etl", ...argv);

beforeAll(async () => {
  server = await Installation.open();
  home = await mkdtemp(join(tmpdir(), "tradewind-output-"));
  outputs = createLargeOutputs(resolveConfig({ home }, {}), server.database);
  app = await createApi({ ...server.options, outputs });
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  await server.addDag(manifestOf("etl", [{ taskId: "big" }, { taskId: "bad" }, { taskId: "load" }]));
  const run = await server.addRun("etl", { runId: "r1" });
  await server.addInstance(run, "big", { state: "success" });
  await server.addInstance(run, "bad", { state: "failed" });
  for (const mapIndex of [0, 1]) await server.addInstance(run, "load", { mapIndex, state: "success" });
  const draft = outputs.draft();
  await draft.open();
  await draft.write(TEXT);
  const place = { dagId: "etl", runId: run, taskId: "big", mapIndex: -1, attempt: ATTEMPT };
  const { id, key } = await outputs.keep(draft, place);
  object = join(home, "outputs", key);
  const refer =
    "INSERT INTO xcom (dag_run_id, task_id, key, object_id) VALUES ($1, 'big', 'return_value', $2)";
  await server.sql(refer, [run, id]);
  await server.sql("INSERT INTO import_error (file, message) VALUES ('a/broken.ts', 'Odd: no\nat 1')");
});

afterAll(async () => {
  await app.close();
  await outputs.close();
  await rm(home, { recursive: true, force: true });
});

it("prints an output of any size completely, and its metadata with --json", async () => {
  const { code, stdout } = await output("r1", "big");
  expect(code).toBe(0);
  expect(stdout === `${TEXT}\n`).toBe(true);
  const { object: known, task_id, value } = JSON.parse((await output("r1", "big", "--json")).stdout);
  expect({ known, task_id }).toMatchObject({
    known: { items: 17, bytes: expect.any(Number) },
    task_id: "big",
  });
  expect(JSON.stringify(value) === TEXT).toBe(true);
});

it("explains why there is no output", async () => {
  const { code, stderr } = await output("r1", "bad");
  expect(code).toBe(3);
  expect(stderr).toMatch(
    /has no output "return_value": it is failed; tradewind tasks why etl r1 bad explains why/,
  );
  expect((await output("r1", "load")).stderr).toMatch(
    /has 2 mapped instances: choose one of them\. \[MAP_INDEX_REQUIRED\]\n.*--map-index <which> \(map index, path/,
  );
  expect((await output("r1", "load", "--map-index", "1")).stderr).toMatch(
    /Task "load\[1\]" .*: it returned nothing/,
  );
  expect((await output("r1", "nothing")).stderr).toMatch(/Task "nothing" of run "r1" .* does not exist/);
  expect((await output("r2", "big")).stderr).toMatch(/DAG "etl" has no run "r2"/);
});

it("names the location of a lost output and the command that recreates it", async () => {
  await rm(object);
  const { code, stderr, stdout } = await output("r1", "big");
  expect({ code, stdout }).toEqual({ code: 6, stdout: "" });
  expect(stderr).toContain(`task "big" of DAG "etl", run "r1", is not in its store any more: ${object}.`);
  expect(stderr).toContain("tradewind tasks clear etl r1 big (--downstream");
  expect(stderr).toContain("[OUTPUT_MISSING]");
  expect(stderr).not.toContain("server's log");
  const where = "/dags/etl/dagRuns/r1/taskInstances/big/xcomEntries/return_value";
  for (const query of ["", "?raw=true"]) {
    const { body } = await app.inject({
      url: `/api/v2${where}${query}`,
      headers: { authorization: `Bearer ${server.token}` },
    });
    expect(JSON.parse(body)).toMatchObject({ status: 502, title: "Bad Gateway", code: "OUTPUT_MISSING" });
  }
});

it("names the broken file of a missing DAG", async () => {
  expect((await tw("dags", "trigger", "broken")).stderr).toContain(
    "`tradewind dags list` shows all DAGs. a/broken.ts fails to load: Odd: no\n",
  );
  expect((await tw("dags", "trigger", "other")).stderr).toContain(
    "shows all DAGs, `tradewind dags errors` the file that fails to load\n",
  );
});
