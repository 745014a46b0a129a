/** What users do on the pages of DAGs, in a real browser against a real server. */
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Site } from "./support/site.ts";

let site: Site;

beforeAll(async () => {
  site = await Site.open();
  await site.run("orders", "good", { fails: false });
  await site.run("orders", "broken");
}, 120_000);
afterAll(() => site?.close());

/** A hash of the pixels of the grid below its bars, whose height depends on the time; 0 before the first ones are drawn. */
const CELLS = `(() => {
  const canvas = document.querySelector('[role="grid"] canvas');
  if (canvas === null || canvas.height < 200) return 0;
  const { data } = canvas.getContext("2d").getImageData(0, 120, canvas.width, canvas.height - 120);
  return data.reduce((hash, each) => Math.imul(hash, 31) + each | 0, 0);
})()`;

it("filters DAGs while a name is typed, and pauses one with an undo", async () => {
  const page = await site.visit("/dags");
  const table = page.getByRole("table");
  await table.getByRole("link", { name: "orders", exact: true }).waitFor();
  await page.getByLabel("Filter by name, owner, tag").fill("shop ord");
  await page.getByText("1 DAG", { exact: true }).waitFor();
  expect(new URL(page.url()).searchParams.get("q")).toBe("shop ord");
  const schedule = page.getByRole("switch", { name: "Schedule of orders" });
  const isPaused = async () =>
    (await site.call<{ is_paused: boolean }>("GET", "/api/v2/dags/orders")).is_paused;
  await schedule.click();
  await page.getByRole("button", { name: "Undo" }).waitFor();
  expect([await schedule.isChecked(), await isPaused()]).toEqual([false, true]);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText('Resumed the schedule of "orders"').waitFor();
  expect([await schedule.isChecked(), await isPaused()]).toEqual([true, false]);
  await page.context().close();
});

it("walks through the grid by keyboard to the task that failed", async () => {
  const page = await site.visit("/dags/orders");
  await page.getByRole("grid").focus();
  const current = page.getByRole("gridcell");
  await page.keyboard.press("End");
  // The group, its task, the map, then the task that fails.
  for (let row = 0; row < 4; row += 1) await page.keyboard.press("ArrowDown");
  await current.getByText(/^check, .*Failed/).waitFor();
  expect(await current.getByRole("link").getAttribute("href")).toBe("/dags/orders/runs/broken/tasks/check");
  await page.keyboard.press("Enter");
  await page.getByText("3 of 3 orders have no customer").waitFor();
  const { searchParams } = new URL(page.url());
  expect([searchParams.get("run"), searchParams.get("task")]).toEqual(["broken", "check"]);
  await page.context().close();
});

it("shows a problem beside its field, and the new run in the grid as soon as it is triggered", async () => {
  const page = await site.visit("/dags/orders");
  await page.getByText(/^2 runs/).waitFor();
  await page.getByRole("button", { name: "Trigger", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("rows").fill("51");
  await dialog.getByRole("button", { name: "Trigger orders" }).click();
  await dialog.getByText("Must be at most 50").waitFor();
  // What only the server knows.
  await dialog.getByRole("radio", { name: "JSON" }).click();
  await dialog.getByLabel("Params as JSON").fill('{"region": "moon"}');
  await dialog.getByRole("button", { name: "Trigger orders" }).click();
  await dialog.getByText(/must be one of: eu, us/).waitFor();
  await dialog.getByLabel("Params as JSON").fill('{"region": "us", "rows": 2}');
  await dialog.getByRole("button", { name: "Trigger orders" }).click();
  await dialog.waitFor({ state: "hidden" });
  await page.getByText(/^3 runs/).waitFor();
  const { dag_runs: runs } = await site.call<{ dag_runs: { conf: unknown }[] }>(
    "GET",
    "/api/v2/dags/orders/dagRuns?order_by=-run_after&limit=1",
  );
  // The grid follows the run until its end.
  expect(runs[0]!.conf).toMatchObject({ region: "us", rows: 2 });
  await page.context().close();
});

it("draws new states of one run as if the whole grid was drawn again", async () => {
  const page = await site.visit("/dags/orders");
  const cells = (of: typeof page) => of.evaluate<number>(CELLS);
  await expect.poll(() => cells(page)).not.toBe(0);
  const before = await cells(page);
  await site.call("PATCH", "/api/v2/dags/orders/dagRuns/broken/taskInstances/check", {
    new_state: "success",
  });
  await site.ended("orders", "broken");
  const opened = await site.visit("/dags/orders");
  await expect.poll(() => cells(opened), { timeout: 20_000 }).not.toBe(0);
  await expect.poll(async () => (await cells(page)) - (await cells(opened)), { timeout: 20_000 }).toBe(0);
  expect(await cells(page)).not.toBe(before);
  for (const each of [opened, page]) await each.context().close();
});

it("lays out the graph, and opens a task of it", async () => {
  const page = await site.visit("/dags/orders?view=graph&run=good");
  await page.getByRole("button", { name: /check task/ }).click();
  await page.getByRole("link", { name: "Attempts" }).waitFor();
  await page.getByRole("button", { name: /extract/ }).click();
  await page.getByRole("button", { name: /extract/, expanded: false }).waitFor();
  expect(new URL(page.url()).searchParams.get("collapsed")).toBe("extract");
  await page.context().close();
});

it("shows the error of a broken file at once, and the new version when it is fixed", async () => {
  const file = join(site.server.folder, "dags", "orders.ts");
  const text = await readFile(file, "utf8");
  const page = await site.visit("/dags/orders?tab=code");
  await page.getByText(/1 version,/).waitFor();
  await appendFile(file, "\nexport const broken = (;\n");
  await page.getByText("orders.ts has not loaded").waitFor();
  await page
    .getByText(/export const broken = \(;/)
    .first()
    .waitFor();
  await writeFile(file, text.replace('d.task("report"', 'd.task("summary"'));
  await page.getByText("orders.ts has not loaded").waitFor({ state: "hidden" });
  await page.getByText(/2 versions,/).waitFor();
  await page.getByLabel("Compare with").selectOption("1");
  await page.getByText("New task summary").waitFor();
  await page.context().close();
});

it("logs no error", () => {
  expect(site.complaints).toEqual([]);
});
