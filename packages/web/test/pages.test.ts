/** Every page in a real browser: it loads, reaches nothing but its server, is accessible, and fits a narrow screen. */
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { violations } from "./support/axe.ts";
import { Site } from "./support/site.ts";

let site: Site;

beforeAll(async () => {
  site = await Site.open();
  await site.run("orders", "first", { fails: false });
  await site.run("orders", "broken");
  await site.call("POST", "/api/v2/variables", { key: "region", value: "eu" });
  await site.call("POST", "/api/v2/connections", { connection_id: "warehouse", conn_type: "postgres" });
}, 120_000);
afterAll(() => site?.close());

/** Address, and a text that its content has. */
const PAGES: readonly (readonly [string, RegExp])[] = [
  ["/", /Needs attention/],
  ["/dags", /orders/],
  ["/dags/orders", /check/],
  ["/dags/orders?run=broken", /Clear failed tasks/],
  ["/dags/orders?run=broken&task=check", /Attempts/],
  ["/dags/orders?view=graph", /States of the run/],
  ["/dags/orders?view=calendar", /Some failed/],
  ["/dags/orders?tab=runs", /Started/],
  ["/dags/orders?tab=tasks", /Usually takes/],
  ["/dags/orders?tab=code", /import/],
  ["/dags/orders?tab=audit", /create|trigger/i],
  ["/runs", /broken/],
  ["/dags/orders/runs/broken", /check/],
  ["/dags/orders/runs/broken/tasks/check", /3 of 3 orders have no customer/],
  ["/waiting", /partner\.landed/],
  ["/waiting?view=groups", /partner\.landed/],
  ["/approvals", /Where is the report published/],
  ["/assets", /s3:\/\/lake\/orders/],
  ["/assets?tab=lineage", /lake_report/],
  ["/assets/1", /s3:\/\/lake\//],
  ["/signals", /Log/],
  ["/signals?tab=conditions", /running run has rules|Condition/],
  ["/signals?tab=listeners", /No program listens by name|Behind/],
  ["/signals?tab=dead", /Every signal was delivered/],
  ["/system?tab=triggerers", /Blocked by/],
  ["/system?tab=executors", /Slots used/],
  ["/system?tab=workers", /There is no worker/],
  ["/system?tab=database", /Answers in/],
  ["/backfills", /No backfill is open/],
  ["/pools", /default_pool/],
  ["/connections", /warehouse/],
  ["/variables", /region/],
  ["/system", /Scheduler/],
  ["/errors", /Every file loads/],
  ["/audit", /create/i],
  ["/settings", /Time zone/],
  ["/reference", /\/api\/v2\/assets/],
  ["/reference?call=POST%20%2Fapi%2Fv2%2Fassets%2Fevents", /As curl/],
  ["/no-such-page", /There is no such page/],
];

describe.each(PAGES)("%s", (path, text) => {
  // One visit for all: a browser profile and a load per theme and width would take most of the time.
  it("is accessible in light and dark, and fits a screen of 390 px", async () => {
    const page = await site.visit(path);
    const shown = page.locator("main").getByText(text).filter({ visible: true }).first();
    await shown.waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await page.title()).toMatch(/· Tradewind$|^Tradewind$/);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await violations(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.reload();
    await shown.waitFor();
    const widest = await page.evaluate<number>("document.documentElement.scrollWidth");
    expect(widest).toBeLessThanOrEqual(390);
    await page.context().close();
  });
});

it("scrolls the bar of tabs to the selected one on a narrow screen", async () => {
  const page = await site.visit("/system?tab=database", { width: 390 });
  await page.getByRole("link", { name: /^Triggerers \d/ }).waitFor();
  const right = `document.querySelector("[data-tab=database]").getBoundingClientRect().right`;
  await page.waitForFunction(`${right} <= 390`);
  await page.context().close();
});

it("has more contrast if the system asks for it, or if it is chosen", async () => {
  const page = await site.visit("/dags/orders");
  const shown = page.locator("main").getByText("check").first();
  const color = () => page.evaluate<string>("getComputedStyle(document.body).color");
  await shown.waitFor();
  const usual = await color();
  await page.emulateMedia({ contrast: "more" });
  // The page hears of the change with its next frame.
  await expect.poll(color).not.toBe(usual);
  expect(await violations(page)).toEqual([]);
  await page.emulateMedia({ contrast: "no-preference" });
  await expect.poll(color).toBe(usual);
  await page.goto("/settings");
  await page.getByRole("checkbox", { name: /^More contrast/ }).check();
  await page.goto("/dags/orders");
  await shown.waitFor();
  expect(await color()).not.toBe(usual);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await violations(page)).toEqual([]);
  await page.context().close();
});

it("finds runs, tasks and settings from the palette", async () => {
  const page = await site.visit("/settings");
  const words = page.getByRole("dialog").getByRole("combobox");
  for (const [typed, result, opened] of [
    ["orders broken", /orders › broken/, "/dags/orders/runs/broken"],
    ["orders check", /orders › check/, "/dags/orders?task=check"],
    ["warehouse", /^warehouse connection/, "/connections?q=warehouse"],
  ] as const) {
    await page.getByRole("button", { name: /Search or jump to/ }).click();
    await words.fill(typed);
    // The results arrive after the last key: the first one is selected then.
    await page.getByRole("option", { name: result, selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`${site.url}${opened}`);
  }
  await page.context().close();
});

it("moves the focus to the content, and from a closed dialog back to the button that opened it", async () => {
  const page = await site.visit("/dags/orders/runs/broken");
  const isFocused = (target: Locator) =>
    target.evaluate((element) => element === element.ownerDocument.activeElement);
  const clear = page.locator("main").getByRole("button", { name: "Clear tasks…" });
  await clear.waitFor();
  await page.getByRole("button", { name: "Skip to the content" }).focus();
  await page.keyboard.press("Enter");
  await expect.poll(() => isFocused(page.locator("main"))).toBe(true);
  expect(page.url()).toBe(`${site.url}/dags/orders/runs/broken`);

  const dialog = page.getByRole("dialog");
  const more = page.locator("main").getByRole("button", { name: "More actions" });
  const search = page.getByRole("button", { name: /Search or jump to/ });
  for (const [opener, item] of [
    [clear, null],
    [more, "Delete run…"],
    [search, null],
  ] as const) {
    await opener.focus();
    await page.keyboard.press("Enter");
    if (item !== null) await page.getByRole("menuitem", { name: item }).press("Enter");
    await dialog.waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await expect.poll(() => isFocused(opener)).toBe(true);
  }
  await page.context().close();
});

it("shows the time of a run and the name of its DAG on a narrow screen", async () => {
  const path = "/api/v2/dags/orders/dagRuns";
  const { dag_run_id: runId } = await site.call<{ dag_run_id: string }>("POST", path, {
    conf: { fails: false },
  });
  await site.ended("orders", runId);
  const page = await site.visit("/runs?dag=orders&state=success", { width: 390 });
  const link = page.getByTitle(runId);
  await link.waitFor();
  await link.getByText(/^(?:\d+ \w+ )?\d\d:\d\d(?::\d\d)?$/).waitFor();
  const isWhole = (target: Locator) =>
    target.evaluate((element) => element.scrollWidth <= element.clientWidth);
  expect(await isWhole(link)).toBe(true);
  await link.click();
  const name = page.getByRole("list", { name: "Path" }).getByRole("link", { name: "orders" });
  await name.waitFor();
  expect(await isWhole(name)).toBe(true);
  await page.goto("/");
  await page.getByRole("heading", { name: /^Runs, last 24 h: all in the last \d/ }).waitFor();
  await page.context().close();
});

it("requests nothing from another origin, and logs no error", () => {
  expect(site.complaints).toEqual([]);
});
