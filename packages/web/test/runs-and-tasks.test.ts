/** The main tasks of an operator in a real browser: find a failed run, read its log, see why, run it again. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Site } from "./support/site.ts";

let site: Site;

beforeAll(async () => {
  site = await Site.open();
  await site.run("orders", "good", { fails: false });
  await site.run("orders", "broken");
  await site.run("orders", "broken_too");
  await site.run("lines", "many");
  await site.run("grouped", "folded");
}, 120_000);
afterAll(() => site?.close());

const main = (page: Page) => page.locator("main");
const log = (page: Page) => page.getByRole("region", { name: /^Log, / });

async function stateOf(runId: string, taskId: string): Promise<string> {
  const path = `/api/v2/dags/orders/dagRuns/${runId}/taskInstances/${taskId}`;
  return (await site.call<{ state: string }>("GET", path)).state;
}

describe("the log of a task", () => {
  it("is shown from its end, and searched as a whole on the server", async () => {
    const page = await site.visit("/dags/lines/runs/many/tasks/write");
    await log(page).getByText("Succeeded.").waitFor();
    await main(page).getByRole("searchbox").fill("is broken");
    await main(page).getByText("1 of 5").waitFor();
    await log(page).getByText("row 500 is broken").waitFor();
    await page.keyboard.press("Enter");
    await main(page).getByText("2 of 5").waitFor();
    await log(page).getByText("row 1500 is broken").waitFor();
    expect(page.url()).toContain("q=is+broken");
    await page.context().close();
  });

  it("keeps what a carriage return left, colours, and the whole of a long line", async () => {
    const page = await site.visit("/dags/lines/runs/many/tasks/write");
    await log(page).getByText("copied 100 %", { exact: true }).waitFor();
    expect(await log(page).getByText("copied 10 %").count()).toBe(0);
    await log(page).locator('[style*="--s-success"]').getByText("green", { exact: true }).waitFor();
    await log(page)
      .getByRole("button", { name: /more characters/ })
      .click();
    await page
      .getByRole("dialog")
      .getByText(/^long x+ end$/)
      .waitFor();
    await page.context().close();
  });

  it("shows only the lines of a level, with lines around them", async () => {
    const page = await site.visit("/dags/lines/runs/many/tasks/write?level=error");
    await log(page).getByText("row 4500 is broken").waitFor();
    expect(await log(page).locator("[data-line]").count()).toBe(5);
    await main(page).getByRole("button", { name: "Lines around" }).click();
    await log(page).getByText("row 4499", { exact: false }).first().waitFor();
    await log(page).getByText("⋯ 993 lines").first().waitFor();
    await page.context().close();
  });

  it("folds groups, and unfolds the one of a match", async () => {
    const page = await site.visit("/dags/grouped/runs/folded/tasks/load");
    const title = (name: string) => log(page).getByRole("button", { name });
    await title("Load a.csv").and(page.locator("[aria-expanded=false]")).waitFor();
    // It contains an error.
    await title("Load b.csv").and(page.locator("[aria-expanded=true]")).waitFor();
    expect(await log(page).getByText("::endgroup::").count()).toBe(0);
    await main(page).getByRole("searchbox").fill("a.csv part 7");
    await log(page).getByText("a.csv part 7").waitFor();
    await title("Load a.csv").click();
    await log(page).getByText("a.csv part 7").waitFor({ state: "detached" });
    await main(page).getByRole("button", { name: "Unfold all groups" }).click();
    await log(page).getByText("a.csv part 8").waitFor();
    await page.goto("/dags/grouped/runs/folded/tasks/load?line=5");
    await log(page).getByText("a.csv part 2").waitFor();
    await page.context().close();
  });

  it("shows only the lines of a source", async () => {
    const page = await site.visit("/dags/grouped/runs/folded/tasks/load");
    await main(page).getByRole("button", { name: "Source: any" }).click();
    await page.getByRole("menuitemradio", { name: "stderr" }).click();
    await page.waitForURL(/source=stderr/);
    await log(page).getByText("b.csv has no header").waitFor();
    expect(await log(page).locator("[data-line]").count()).toBe(1);
    await page.context().close();
  });

  it("has links to lines", async () => {
    const page = await site.visit("/dags/lines/runs/many/tasks/write?line=2502");
    await log(page).getByText("row 2500 is broken").waitFor();
    await main(page).getByText("Line 2,502").waitFor();
    await log(page)
      .getByRole("button", { name: "Link to line 2504", exact: true })
      .click({ modifiers: ["Shift"] });
    await page.waitForURL(/line=2502-2504/);
    await page.context().close();
  });

  it("copies lines that are not drawn", async () => {
    const page = await site.visit("/dags/lines/runs/many/tasks/write");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await log(page).getByText("Succeeded.").waitFor();
    await main(page).getByRole("button", { name: "Copy the whole log" }).click();
    await page.getByText(/^Copied 5,\d\d\d lines$/).waitFor();
    const copied = (await page.evaluate<string>("navigator.clipboard.readText()")).split("\n");
    expect(copied.filter((line) => /INFO {2}row 1 \{"part":1\}$/.test(line))).toHaveLength(1);
    expect(copied.length).toBeGreaterThan(5_000);
    await page.context().close();
  });

  it("grows while the task runs", async () => {
    await site.call("POST", "/api/v2/dags/talk/dagRuns", { dag_run_id: "now" });
    const page = await site.visit("/dags/talk/runs/now/tasks/listen?tab=log");
    await log(page).getByText("before the signal").waitFor();
    await main(page).getByText("being written").waitFor();
    await site.call("POST", "/api/v2/signals", {
      key: "lines.go",
      value: { text: "hello" },
    });
    await log(page).getByText("after the signal: hello").waitFor();
    await main(page)
      .getByText(/complete$/)
      .waitFor();
    await page.context().close();
  });
});

describe("why", () => {
  it("leads from a task that did not run to the failure", async () => {
    const page = await site.visit("/dags/orders/runs/broken/tasks/report");
    await main(page).getByText("3 of 3 orders have no customer").first().waitFor();
    await main(page).getByRole("link", { name: "check" }).first().click();
    await page.waitForURL(/tasks\/check/);
    await page.context().close();
  });
});

describe("an earlier try", () => {
  it("has its own process, time and failure, without remedies for a task that has succeeded since", async () => {
    await site.run("orders", "twice");
    const task = "/api/v2/dags/orders/dagRuns/twice/taskInstances/check";
    await site.call("POST", "/api/v2/dags/orders/clearTaskInstances", {
      ...{ dry_run: false, dag_run_id: "twice", task_ids: ["check"] },
    });
    await site.ended("orders", "twice");
    await site.call("PATCH", task, { new_state: "success" });
    const { task_instances: tries } = await site.call<{ task_instances: { pid: number }[] }>(
      "GET",
      `${task}/tries`,
    );
    expect(tries).toHaveLength(2);
    const page = await site.visit("/dags/orders/runs/twice/tasks/check?try=1");
    await main(page).getByText("Where the time of try 1 went").waitFor();
    await main(page).getByText(`pid ${tries[0]!.pid}`).waitFor();
    const details = page.getByRole("complementary", { name: "Details" });
    await details.getByText("Why this try failed").waitFor();
    expect(await details.getByText("What you can do").count()).toBe(0);
    await page.context().close();
  });
});

describe("a run", () => {
  it("has a timeline that is used with the keyboard", async () => {
    const page = await site.visit("/dags/orders/runs/broken");
    const timeline = page.getByRole("region", { name: /^Timeline/ });
    await timeline.getByRole("button", { name: /^Failed check/ }).waitFor();
    await timeline.focus();
    await page.keyboard.press("ArrowDown");
    await page.waitForURL(/task=extract\.list/);
    await page.getByRole("complementary", { name: "Details" }).getByText("What it did").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/tasks\/extract\.list$/);
    await page.goBack();
    const check = timeline.getByRole("button", { name: /^Failed check/ });
    await check.click();
    await page.waitForURL(/task=check/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/tasks\/check$/);
    await page.context().close();
  });

  it("is found, read and run again with the keyboard alone", async () => {
    const page = await site.visit("/runs?state=failed&dag=orders");
    await page.getByRole("link", { name: "broken", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/runs\/broken$/);
    const timeline = page.getByRole("region", { name: /^Timeline/ });
    await timeline.getByRole("button", { name: /^Failed check/ }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Log and details" }).focus();
    await page.keyboard.press("Enter");
    await log(page).getByText("3 of 3 orders have no customer").waitFor();
    await main(page).getByRole("button", { name: "Clear…" }).first().focus();
    await page.keyboard.press("Enter");
    const clear = page.getByRole("dialog").getByRole("button", { name: "Clear 2 tasks" });
    await clear.focus();
    await page.keyboard.press("Enter");
    await page.getByText("Cleared 2 tasks").waitFor();
    await site.ended("orders", "broken");
    expect(await site.tryNumber("orders", "broken", "check")).toBe(2);
    await page.context().close();
  });
});

describe("actions", () => {
  it("mark tasks after a preview, and take it back", async () => {
    const page = await site.visit("/dags/orders/runs/good/tasks/report");
    await main(page).getByRole("button", { name: "Mark as…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("radio", { name: "Skipped" }).click();
    await dialog.getByRole("button", { name: "Mark 1 task as skipped" }).click();
    await page.getByText("Marked 1 task as skipped").waitFor();
    expect(await stateOf("good", "report")).toBe("skipped");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Undone: 1 task is success again").waitFor();
    expect(await stateOf("good", "report")).toBe("success");
    await page.context().close();
  });

  it("of a selection of runs say how many tasks they clear, and are copied as commands", async () => {
    const page = await site.visit("/runs?dag=orders&state=failed");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("link", { name: "broken_too" }).waitFor();
    await page.getByRole("checkbox", { name: "Select all rows" }).check();
    await page.getByRole("button", { name: "Run failed tasks again…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: /^Clear \d+ tasks/ }).waitFor();
    await dialog.getByRole("button", { name: "Copy as…" }).click();
    await page.getByRole("menuitem", { name: "Copy as CLI" }).click();
    await page.getByText("Copied as a CLI command").waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toMatch(
      /^tradewind runs clear orders .*broken_too.* --only-failed$/,
    );
    await page.context().close();
  });
});

it("logs no error", () => {
  expect(site.complaints).toEqual([]);
});
