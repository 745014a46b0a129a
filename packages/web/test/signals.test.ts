/** From a signal to what it caused, and back; a range of time from the histogram. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { violations } from "./support/axe.ts";
import { Site } from "./support/site.ts";

let site: Site;
let version: number;

interface Sent {
  readonly signals: readonly { readonly version: number }[];
}

beforeAll(async () => {
  site = await Site.open();
  // The one run of its schedule.
  const run = await vi.waitUntil(
    async () => {
      const runs = "/api/v2/dags/waits/dagRuns";
      return (await site.call<{ dag_runs: { dag_run_id: string }[] }>("GET", runs)).dag_runs[0];
    },
    { timeout: 60_000 },
  );
  for (const key of ["partner.other", "stock.low"])
    await site.call("POST", "/api/v2/signals", { key, value: 1 });
  const sent = await site.call<Sent>("POST", "/api/v2/signals", {
    key: "partner.landed",
    value: { rows: 3 },
  });
  version = sent.signals[0]!.version;
  await site.ended("waits", run.dag_run_id);
}, 120_000);
afterAll(() => site?.close());

it("leads from a signal to the task that it resumed, and back", async () => {
  const page = await site.visit("/signals");
  const row = page.getByRole("row", { name: /partner\.landed/ });
  await row.getByText("1 task").waitFor();
  await row.click();
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByText(/Task .*waits › wait.* resumed/).waitFor();
  await details.getByText(/wait "landed"/).waitFor();
  await details.getByText(/^\+\d/).waitFor();
  expect(await violations(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: "dark" });
  expect(await violations(page)).toEqual([]);
  await details.getByRole("link", { name: "waits › wait" }).click();
  await page.waitForURL(/\/tasks\/wait/);
  await page.getByText("resumed by").waitFor();
  await page.locator("main").getByRole("link", { name: "partner.landed" }).click();
  await page.waitForURL(new RegExp(`/signals\\?.*signal=${version}`));
  await page.context().close();
});

it("shows signals by the first part of their keys, and narrows the list to one", async () => {
  const page = await site.visit("/signals");
  const chart = page.getByRole("region", { name: "Signals over time" });
  await chart.getByRole("button", { name: "partner" }).click();
  await page.waitForURL(/key=partner\*|key=partner%2A/);
  await page.getByRole("row", { name: /stock\.low/ }).waitFor({ state: "detached" });
  await page.getByRole("row", { name: /partner\.other/ }).waitFor();
  await page.context().close();
});

it("selects a range of time with the mouse and with the keyboard, and leaves it again", async () => {
  const page = await site.visit("/signals");
  const axis = page.getByRole("slider", { name: "Select a range of time" });
  await page.getByRole("row", { name: /stock\.low/ }).waitFor();
  const box = (await axis.boundingBox())!;
  await page.mouse.move(box.x + 2, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  await page.mouse.up();
  await page.waitForURL(/from=.*to=/);
  await page.getByText("No signal matches").waitFor();
  await page.getByRole("button", { name: "Show the latest signals again" }).click();
  await page.getByRole("row", { name: /stock\.low/ }).waitFor();
  expect(page.url()).not.toContain("from=");
  await axis.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("Enter");
  await page.waitForURL(/from=.*to=/);
  await page.getByRole("row", { name: /stock\.low/ }).waitFor();
  await page.context().close();
});

it("lists the tasks that wait for one signal, and offers to send it", async () => {
  await site.call("POST", "/api/v2/dags/waits/dagRuns", { dag_run_id: "again", conf: {} });
  const page = await site.visit("/waiting");
  await page.getByRole("radio", { name: "Groups" }).click();
  await page.waitForURL(/view=groups/);
  const group = page.getByRole("row", { name: /signal partner\.landed 1 / });
  await group.getByRole("link").click();
  await page.waitForURL(/\/waiting\?signal=default(\/|%2F)partner\.landed$/);
  await page.goBack();
  await group.waitFor();
  await page.goForward();
  await page.getByRole("button", { name: "Signal partner.landed ✕" }).waitFor();
  await page.getByRole("row", { name: /wait/ }).filter({ hasText: "partner.landed" }).first().click();
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByRole("link", { name: "Send the signal…" }).click();
  const dialog = page.getByRole("dialog", { name: "Send signal" });
  expect(await dialog.getByLabel("Key").inputValue()).toBe("partner.landed");
  await dialog.getByLabel("Value").fill('{"rows": 9}');
  await dialog.getByRole("button", { name: "Send signal" }).click();
  await dialog.waitFor({ state: "detached" });
  await site.ended("waits", "again");
  await page.context().close();
});

it("shows which signals of a schedule have arrived", async () => {
  await writeFile(
    join(site.server.folder, "dags", "join.ts"),
    `import { all, dag, on, signal } from "tradewind";
     const stock = signal("stock.counted");
     const prices = signal("prices.set");
     export default dag("join", { schedule: on(all(stock, prices)) }, (d) => d.task("report", () => 1));`,
  );
  const page = await site.visit("/signals?tab=conditions");
  const row = page.getByRole("row", { name: /create a run of join/ });
  // The page was open before the file was loaded.
  await row.getByText("○ prices.set (missing)").waitFor();
  await site.call("POST", "/api/v2/signals", { key: "stock.counted", value: 1 });
  const schedules = () => site.call("GET", "/ui/signals/schedules");
  await vi.waitUntil(async () => /"version":\d/.test(JSON.stringify(await schedules())), 60_000);
  await page.reload();
  await row.getByText("partly met: 1 of 2").waitFor();
  expect(await violations(page)).toEqual([]);
  await row.getByRole("link", { name: "stock.counted" }).click();
  await page.waitForURL(/signal=\d+/);
  await page.context().close();
});

it("logs no error", () => {
  expect(site.complaints).toEqual([]);
});
