/** Commands about deadlines and deliveries, against a real server with rows written by the test. */
import { beforeAll, expect, it } from "vitest";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { addDeadline, addDelivery } from "../../engine/test/api/missed.ts";
import { runCaptured } from "./support/captured-host.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let url: string;
let dead: number[];
let tw: ServedInstallation["tw"];

beforeAll(async () => {
  ({ server, tw, url } = await servedInstallation());
  await server.addDag(manifestOf("etl", [{ taskId: "load" }]));
  const run = await server.addRun("etl", { runId: "r1", state: "running" });
  const missed = await addDeadline(server, { dagRunId: run, taskId: "load" });
  await addDeadline(server, { dagRunId: run, state: "pending", dueAt: new Date(Date.now() + 3_600_000) });
  const pager = { kind: "webhook", to: "pager" } as const;
  dead = [
    await addDelivery(server, missed, pager, { error: "The webhook at pager answered 500" }),
    await addDelivery(server, missed, { kind: "function" }),
    await addDelivery(server, missed, pager),
  ];
});

it("lists all or missed deadlines", async () => {
  const { code, stdout } = await tw("deadlines", "list");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^DAG +RUN +TASK +AFTER +DUE +STATE +RUN IS +SENT$/m);
  expect(stdout).toMatch(/^etl +r1 +load +queued +.* +missed +running +3 of 3 failed$/m);
  expect(stdout).toMatch(/^etl +r1 +- +queued +in .* +pending +running +0$/m);
  const missed = JSON.parse((await tw("deadlines", "list", "--missed", "--json")).stdout);
  expect(missed).toMatchObject([{ task_id: "load", state: "missed" }]);
  expect(JSON.parse((await tw("deadlines", "list", "--state", "met", "--json")).stdout)).toEqual([]);
  expect((await tw("deadlines", "list", "--state", "met")).stderr).toContain("No deadlines match");
});

it("lists and retries dead deliveries", async () => {
  const { stdout } = await tw("deliveries", "list", "--dead");
  expect(stdout).toMatch(/^ *ID +EVENT +DAG +RUN +TASK +TO +WHEN +STATE +TRIES +ERROR$/m);
  expect(stdout).toMatch(
    new RegExp(`^ *${dead[0]} +deadline +etl +r1 +load +webhook pager .* dead +8 +The webhook at pager`, "m"),
  );
  const narrow = await runCaptured(["deliveries", "list", "--dead"], {
    env: { TRADEWIND_URL: url, TRADEWIND_TOKEN: server.token },
    columns: 64,
  });
  expect(narrow.stdout).toContain("ERROR");
  expect(narrow.stdout).toContain(" The webhook");
  const shown = await tw("deliveries", "show", String(dead[0]));
  expect(shown.stdout).toMatch(/^run +r1$/m);
  expect(shown.stdout).toMatch(/^error +The webhook at pager/m);
  expect(await tw("deliveries", "show", "12345")).toMatchObject({ code: 3 });
  expect(await tw("deliveries", "retry", String(dead[0]))).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("1 delivery queued for retry."),
  });
  expect(await tw("deliveries", "retry", String(dead[0]))).toMatchObject({
    code: 5,
    stderr: expect.stringContaining("only dead deliveries"),
  });
  expect(JSON.parse((await tw("deliveries", "retry", "--all", "--json")).stdout)).toHaveLength(2);
  expect((await tw("deliveries", "list", "--dead")).stderr).toContain("No deliveries match");
  const pending = JSON.parse((await tw("deliveries", "list", "--state", "pending", "--json")).stdout);
  expect(pending).toHaveLength(3);
  expect(JSON.parse((await tw("deliveries", "list", "--event", "failure", "--json")).stdout)).toEqual([]);
  expect((await tw("deliveries", "retry", "--all")).stderr).toContain("No dead deliveries");
});

it("names the missing argument", async () => {
  expect(await tw("deliveries", "retry")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("numbers of deliveries or --all"),
  });
  expect(await tw("deliveries", "retry", "x")).toMatchObject({ code: 2 });
  expect(await tw("deliveries", "retry", "12345")).toMatchObject({ code: 3 });
});
