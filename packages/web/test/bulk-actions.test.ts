/** Changes of many rows at once, and notes, in a real browser. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { violations } from "./support/axe.ts";
import { Site } from "./support/site.ts";

let site: Site;

beforeAll(async () => {
  site = await Site.open();
  await site.run("orders", "good", { fails: false });
  await site.run("orders", "broken");
  await site.run("orders", "broken_too");
  await site.run("lines", "short", { lines: 10 });
}, 120_000);
afterAll(() => site?.close());

const main = (page: Page) => page.locator("main");
const dialogOf = (page: Page) => page.getByRole("dialog");
const bar = (page: Page) => page.getByRole("toolbar", { name: "Selected rows" });
const rowOf = (page: Page, text: string) =>
  main(page)
    .getByRole("row")
    .filter({ has: page.getByRole("link", { name: text, exact: true }) });
const check = (page: Page, text: string) =>
  rowOf(page, text).getByRole("checkbox", { name: "Select this row" });

const isPaused = async (dagId: string) =>
  (await site.call<{ is_paused: boolean }>("GET", `/api/v2/dags/${dagId}`)).is_paused;
const runOf = (runId: string) =>
  site.call<{ state: string; note: string | null }>("GET", `/api/v2/dags/orders/dagRuns/${runId}`);

async function copied(page: Page, what: "CLI" | "curl"): Promise<string> {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await dialogOf(page).getByRole("button", { name: "Copy as…" }).click();
  await page.getByRole("menuitem", { name: `Copy as ${what}` }).click();
  await page.getByText("Copied as").waitFor();
  return page.evaluate<string>("navigator.clipboard.readText()");
}

describe("a selection", () => {
  it("is made with the keyboard alone, and moves no row", async () => {
    const page = await site.visit("/runs?dag=orders");
    await rowOf(page, "good").waitFor();
    const before = await rowOf(page, "good").boundingBox();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await bar(page).getByText("1 selected").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+X");
    await bar(page).getByText("3 selected").waitFor();
    expect(await rowOf(page, "good").boundingBox()).toEqual(before);
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("x");
    await bar(page).getByText("2 selected").waitFor();
    await page.keyboard.press("a");
    await page.keyboard.press("Enter");
    await dialogOf(page)
      .getByRole("button", { name: /^Clear \d+ tasks of 2 runs$/ })
      .waitFor();
    await page.context().close();
  });

  it("takes all rows between two clicks with Shift", async () => {
    const page = await site.visit("/dags/orders?tab=runs");
    const boxes = main(page).getByRole("checkbox", { name: "Select this row" });
    await boxes.nth(2).waitFor();
    await boxes.nth(0).click();
    await boxes.nth(2).click({ modifiers: ["Shift"] });
    await bar(page).getByText("3 selected").waitFor();
    await bar(page).getByRole("button", { name: "Deselect all" }).click();
    await bar(page).waitFor({ state: "detached" });
    await page.context().close();
  });
});

describe("selected DAGs", () => {
  it("are paused after a preview, and resumed by undo", async () => {
    const page = await site.visit("/dags?sort=dag_id");
    await check(page, "lines").check();
    await check(page, "orders").check();
    await bar(page).getByRole("button", { name: "Pause…" }).click();
    const list = dialogOf(page).getByRole("region", { name: "What will change" });
    await list.getByText("orders", { exact: true }).waitFor();
    expect(await copied(page, "CLI")).toBe("tradewind dags pause lines orders");
    expect(await violations(page)).toEqual([]);
    await dialogOf(page).getByRole("button", { name: "Pause 2 DAGs" }).click();
    await page.getByText("Paused 2 DAGs").waitFor();
    expect(await Promise.all(["lines", "orders"].map(isPaused))).toEqual([true, true]);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Undone: 2 DAGs are active again").waitFor();
    expect(await Promise.all(["lines", "orders"].map(isPaused))).toEqual([false, false]);
    await page.context().close();
  });

  it("are triggered with their defaults, without those that need params", async () => {
    const page = await site.visit("/dags?sort=dag_id");
    await check(page, "lines").check();
    await check(page, "needy").check();
    await bar(page).getByRole("button", { name: "Trigger…" }).click();
    await dialogOf(page).getByText("left out: needs day").waitFor();
    expect(await copied(page, "curl")).toMatch(/^curl -X POST \S+\/api\/v2\/dags\/lines\/dagRuns/);
    await dialogOf(page).getByRole("button", { name: "Trigger 1 DAG", exact: true }).click();
    await page.getByText("Triggered 1 DAG").waitFor();
    const { total_entries: runs } = await site.call<{ total_entries: number }>(
      "GET",
      "/api/v2/dags/lines/dagRuns",
    );
    expect(runs).toBe(2);
    await page.context().close();
  });

  it("have the failed tasks of their failed runs cleared", async () => {
    const page = await site.visit("/dags?sort=dag_id");
    await check(page, "orders").check();
    await bar(page).getByRole("button", { name: "Run failed tasks again…" }).click();
    await dialogOf(page).getByRole("button", { name: "Clear 2 tasks", exact: true }).waitFor();
    await dialogOf(page).getByRole("radio", { name: "Failed runs of the last 30" }).click();
    await dialogOf(page).getByRole("button", { name: "Clear 4 tasks of 2 runs" }).click();
    await page.getByText("Cleared 4 tasks").waitFor();
    await site.ended("orders", "broken");
    await site.ended("orders", "broken_too");
    expect(await site.tryNumber("orders", "broken", "check")).toBe(2);
    await page.context().close();
  });
});

describe("selected runs", () => {
  it("are marked, and get their states back while nothing else has changed them", async () => {
    const page = await site.visit("/runs?dag=orders");
    await check(page, "broken_too").check();
    await bar(page).getByRole("button", { name: "Mark as…" }).click();
    await dialogOf(page).getByRole("button", { name: "Mark this run as success" }).click();
    await page.getByText("Marked 1 run as success").waitFor();
    expect((await runOf("broken_too")).state).toBe("success");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Undone: 1 run is failed again").waitFor();
    expect((await runOf("broken_too")).state).toBe("failed");
    await page.context().close();
  });

  it("are marked only if they have another state", async () => {
    const page = await site.visit("/runs?dag=orders");
    await check(page, "broken_too").check();
    await check(page, "good").check();
    await bar(page).getByRole("button", { name: "Mark as…" }).click();
    await dialogOf(page).getByText("1 run is success already").waitFor();
    await dialogOf(page).getByText("only the state of the run changes").waitFor();
    await dialogOf(page).getByRole("button", { name: "Mark 1 run as success" }).waitFor();
    expect(await dialogOf(page).getByText("They are stopped").count()).toBe(0);
    await page.context().close();
  });

  it("are deleted after a list of them", async () => {
    await site.run("orders", "spare");
    const page = await site.visit("/dags/orders?tab=runs");
    await check(page, "spare").check();
    await bar(page).getByRole("button", { name: "Delete…" }).click();
    const list = dialogOf(page).getByRole("region", { name: "What will be deleted" });
    await list.getByText("spare", { exact: true }).waitFor();
    await dialogOf(page).getByRole("button", { name: "Delete this run" }).click();
    await page.getByText("Deleted 1 run").waitFor();
    await rowOf(page, "spare").waitFor({ state: "detached" });
    await expect(runOf("spare")).rejects.toThrow("404");
    await page.context().close();
  });
});

it("marks a selection of waiting tasks", async () => {
  const page = await site.visit("/waiting?dag=waits");
  await main(page).getByRole("checkbox", { name: "Select this row" }).check();
  await bar(page).getByRole("button", { name: "Mark as…" }).click();
  await dialogOf(page).getByRole("radio", { name: "Skipped" }).click();
  await dialogOf(page).getByRole("button", { name: "Mark 1 task as skipped" }).click();
  await main(page).getByText("No task waits for this").waitFor();
  await page.context().close();
});

describe("a note", () => {
  it("of a run is written, marked in lists and in the grid, and taken back", async () => {
    const page = await site.visit("/dags/orders/runs/broken");
    await page.getByRole("button", { name: "Add a note" }).click();
    await dialogOf(page).getByLabel("Note").fill("The partner was late.");
    await dialogOf(page).getByRole("button", { name: "Save the note" }).click();
    await page.getByText("Saved the note").waitFor();
    await main(page).getByText("The partner was late.").waitFor();
    expect(await runOf("broken")).toMatchObject({ note: "The partner was late." });
    const list = await page.context().newPage();
    await list.goto("/runs?dag=orders");
    await rowOf(list, "broken").getByText("Note: The partner was late.").waitFor();
    const grid = await page.context().newPage();
    await grid.goto("/dags/orders?run=broken");
    await main(grid).getByText("The partner was late.").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("button", { name: "Add a note" }).waitFor();
    expect(await runOf("broken")).toMatchObject({ note: null });
    await page.context().close();
  });

  it("of a task is changed with Ctrl Enter, and removed", async () => {
    const path = "/api/v2/dags/orders/dagRuns/broken/taskInstances/check";
    const noteOf = async () => (await site.call<{ note: string | null }>("GET", path)).note;
    await site.call("PATCH", path, { note: "old" });
    const page = await site.visit("/dags/orders/runs/broken/tasks/check");
    await page.getByRole("button", { name: "Edit the note" }).click();
    await dialogOf(page).getByLabel("Note").fill("new");
    await page.keyboard.press("Control+Enter");
    await page.getByText("Saved the note").waitFor();
    expect(await noteOf()).toBe("new");
    await page.getByRole("button", { name: "Edit the note" }).click();
    await dialogOf(page).getByLabel("Note").fill("");
    await dialogOf(page).getByRole("button", { name: "Remove the note" }).click();
    await page.getByText("Removed the note").waitFor();
    expect(await noteOf()).toBeNull();
    await page.context().close();
  });
});

it("logs no error", () => {
  expect(site.complaints).toEqual([]);
});
