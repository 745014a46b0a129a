/** What people do in the UI, in a real browser: sign in, trigger, clear, edit, send; and what changes on open pages meanwhile. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { violations } from "./support/axe.ts";
import { Site } from "./support/site.ts";
import { StreamProxy } from "./support/stream-proxy.ts";

let site: Site;

beforeAll(async () => {
  site = await Site.open();
  await site.run("orders", "broken");
}, 120_000);
afterAll(() => site?.close());

const main = (page: Page) => page.locator("main");
const log = (page: Page) => page.getByRole("region", { name: /^Log, / });
const button = (within: Page | Locator, name: string | RegExp) =>
  within.getByRole("button", { name, ...(typeof name === "string" && { exact: true }) });

/** A mark that a reload of the page would remove. */
async function mark(...pages: readonly Page[]): Promise<void> {
  for (const page of pages) await page.evaluate("globalThis.isSameDocument = true");
}
const isMarked = (page: Page) => page.evaluate<boolean>("globalThis.isSameDocument === true");

async function isLive(...pages: readonly Page[]): Promise<void> {
  await Promise.all(pages.map((page) => page.getByRole("status").getByText("Live").waitFor()));
}

describe("sign-in", () => {
  it("accepts the link that standalone prints once, and removes its code from the address", async () => {
    const link = /\S+\/sign-in#code=\S+/.exec(site.server.stderr)![0];
    const page = await site.visit(link, { signedIn: false });
    await page.getByRole("heading", { name: "Needs attention" }).waitFor();
    expect(page.url()).toBe(`${site.url}/`);
    await page.context().close();

    const second = await site.visit(link, { signedIn: false });
    await second.getByText("The link was used or has expired. Make another with: tradewind open").waitFor();
    await second.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(second.url()).toBe(`${site.url}/`);
    await second.context().close();
  });

  it("rejects an unknown token with the server's message, and accepts a token until the user signs out", async () => {
    const page = await site.visit("/pools", { signedIn: false });
    await page.getByLabel("Token").fill("not-a-token");
    await button(page, "Sign in").click();
    await page.getByText("The token is unknown or has expired").waitFor();
    await page.getByLabel("Token").fill(site.token);
    await button(page, "Sign in").click();
    await main(page).getByText("default_pool").waitFor();
    await button(page, /^Signed in as/).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.getByText("default_pool").count()).toBe(0);
    await page.context().close();
  });
});

describe("trigger", () => {
  it("checks the form, and the run appears and ends on open pages without a reload", async () => {
    const page = await site.visit("/dags/orders");
    const list = await page.context().newPage();
    await list.goto("/dags/orders?tab=runs");
    await page.getByRole("grid", { name: /in 1 runs/ }).waitFor();
    await list.getByRole("link", { name: "broken" }).waitFor();
    await isLive(page, list);
    await mark(page, list);

    await button(main(page), "Trigger").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("region").selectOption({ label: "us" });
    await dialog.getByLabel("fails").selectOption({ label: "false" });
    const rows = dialog.getByLabel("rows");
    await rows.fill("99");
    await button(dialog, "Trigger orders").click();
    await dialog.getByText("Must be at most 50").waitFor();
    const note = (await rows.getAttribute("aria-describedby"))!;
    expect(await dialog.locator(`[id="${note}"]`).textContent()).toBe("Must be at most 50");
    await rows.fill("2");
    await button(dialog, "Trigger orders").click();

    await page.getByRole("grid", { name: /in 2 runs/ }).waitFor();
    await button(list, "Show 1 new run").click();
    const started = list.getByRole("row").filter({ hasText: /manual__/ });
    await started.getByText("Success").waitFor();
    expect(await Promise.all([page, list].map(isMarked))).toEqual([true, true]);
    const { dag_runs: runs } = await site.call<{ dag_runs: { conf: object; state: string }[] }>(
      "GET",
      "/api/v2/dags/orders/dagRuns?order_by=-run_after&limit=1",
    );
    expect(runs[0]).toMatchObject({ state: "success", conf: { region: "us", rows: 2, fails: false } });
    await page.context().close();
  });
});

describe("the form of a DAG's params", () => {
  it("has the fields in the author's order", async () => {
    const page = await site.visit("/dags/needy");
    await button(main(page), "Trigger").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("day").waitFor();
    const labels = await dialog.locator("label, legend").allTextContents();
    expect(labels.map((text) => /^[a-z]+/.exec(text)?.[0]).slice(0, 6)).toEqual([
      ...["region", "day", "options", "retries", "all", "by"],
    ]);
    expect(await dialog.getByLabel("retries").inputValue()).toBe("2");
    await page.context().close();
  });

  it("is edited as JSON, with the line of an error, and begins with params of earlier runs", async () => {
    await site.run("needy", "earlier", { day: "2026-11-15", by: "ann" });
    const page = await site.visit("/dags/needy");
    await button(main(page), "Trigger").click();
    const dialog = page.getByRole("dialog");
    await button(dialog, "As before…").click();
    await page.getByRole("menuitem", { name: "day=2026-11-15, by=ann" }).click();
    expect(await dialog.getByLabel("day").inputValue()).toBe("2026-11-15");
    await dialog.getByRole("radio", { name: "JSON" }).click();
    const editor = dialog.getByRole("textbox", { name: "Params as JSON" });
    await editor.getByText('"2026-11-15"').waitFor();
    expect(await violations(page)).toEqual([]);
    await editor.press("Control+a");
    await page.keyboard.type('{\n"day": "2026-11-16"\n"by": "bob"}');
    await dialog.getByText(/^Line 3: /).waitFor();
    expect(await editor.getAttribute("aria-invalid")).toBe("true");
    expect(await violations(page)).toEqual([]);
    await button(dialog, "Trigger needy").click();
    await dialog.getByText("The params are not a JSON object.").waitFor();
    await page.keyboard.press("Control+z");
    await editor.press("Control+a");
    await page.keyboard.type('{"day": "2026-11-16",\n"by": "bob"}');
    await dialog.getByText(/^Line/).waitFor({ state: "detached" });
    await editor.press("Tab");
    expect(await editor.evaluate((element) => element.contains(element.ownerDocument.activeElement))).toBe(
      false,
    );
    await button(dialog, "Trigger needy").click();
    await dialog.waitFor({ state: "detached" });
    const { dag_runs: runs } = await site.call<{ dag_runs: { conf: object }[] }>(
      "GET",
      "/api/v2/dags/needy/dagRuns?order_by=-run_after&limit=1",
    );
    expect(runs[0]).toMatchObject({ conf: { day: "2026-11-16", by: "bob" } });
    await page.context().close();
  });
});

describe("the keyboard", () => {
  /** Moves the focus with Tab until it is there. */
  async function tabTo(page: Page, target: Locator): Promise<void> {
    await target.waitFor();
    for (let presses = 0; presses < 120; presses += 1) {
      if (await target.evaluate((element) => element === element.ownerDocument.activeElement)) return;
      await page.keyboard.press("Tab");
    }
    throw new Error(`Tab does not reach ${target}`);
  }

  it("is enough to find a failure on the home page, read its log, and clear it with its downstream", async () => {
    await site.run("orders", "failing");
    const page = await site.visit("/");
    await main(page).getByRole("heading", { name: "Needs attention" }).waitFor();
    await tabTo(page, page.getByRole("button", { name: "Skip to the content" }));
    await page.keyboard.press("Enter");
    const attention = page.getByRole("region", { name: "Needs attention" });
    await tabTo(page, attention.getByRole("link", { name: "check" }));
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/dags\/orders\/runs\/failing\/tasks\/check/);
    await log(page).getByText("3 of 3 orders have no customer").waitFor();
    await isLive(page);
    await mark(page);
    await tabTo(page, button(main(page), "Clear…").first());
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("report", { exact: true }).waitFor();
    await tabTo(page, button(dialog, "Clear 2 tasks"));
    await page.keyboard.press("Enter");
    await page.getByText("Cleared 2 tasks").waitFor();
    await tabTo(page, main(page).getByRole("link", { name: /^Try 2/ }));
    await page.keyboard.press("Enter");
    await main(page).getByText("Failed", { exact: true }).first().waitFor();
    await log(page).getByText("3 of 3 orders have no customer").waitFor();
    expect(await isMarked(page)).toBe(true);
    const path = "/api/v2/dags/orders/dagRuns/failing/taskInstances/check";
    expect(await site.call("GET", path)).toMatchObject({ try_number: 2, state: "failed" });
    await page.context().close();
  });
});

describe("settings", () => {
  it("creates, changes and deletes a pool", async () => {
    const page = await site.visit("/pools");
    const dialog = page.getByRole("dialog");
    const row = main(page).getByRole("row").filter({ hasText: "gpu" });
    await button(page, "New pool").click();
    await dialog.getByLabel("Name").fill("gpu");
    await dialog.getByLabel("Slots", { exact: true }).fill("2.5");
    await dialog.getByText("A whole number, or -1").waitFor();
    expect(await button(dialog, "Create pool").isDisabled()).toBe(true);
    await dialog.getByLabel("Slots", { exact: true }).fill("3");
    await button(dialog, "Create pool").click();
    await row.getByText("0 of 3").waitFor();
    await button(row, "gpu").click();
    await dialog.getByLabel("Slots", { exact: true }).fill("5");
    await button(dialog, "Save pool").click();
    await row.getByText("0 of 5").waitFor();
    await button(row, "Delete gpu").click();
    await button(dialog, "Keep").click();
    await dialog.waitFor({ state: "detached" });
    expect(await site.call("GET", "/api/v2/pools/gpu")).toMatchObject({ slots: 5 });
    await button(row, "Delete gpu").click();
    await button(dialog, "Delete pool gpu").click();
    // While a dialog is open, the list behind it has no roles.
    await page.getByText("Pool gpu is deleted").waitFor();
    await dialog.waitFor({ state: "detached" });
    await row.waitFor({ state: "detached" });
    await expect(site.call("GET", "/api/v2/pools/gpu")).rejects.toThrow("404");
    await page.context().close();
  });

  it("creates, changes and deletes a variable", async () => {
    const page = await site.visit("/variables");
    const dialog = page.getByRole("dialog");
    const row = main(page).getByRole("row").filter({ hasText: "greeting" });
    await main(page).getByText("There is no variable yet").waitFor();
    await button(page, "New variable").click();
    await dialog.getByLabel("Key").fill("greeting");
    await dialog.getByLabel("Value").fill("hello");
    await button(dialog, "Create variable").click();
    await row.getByText("hello").waitFor();
    await button(row, "greeting").click();
    await dialog.getByLabel("Value").fill("good morning");
    await button(dialog, "Save variable").click();
    await row.getByText("good morning").waitFor();
    expect(await site.call("GET", "/api/v2/variables/greeting")).toMatchObject({ value: "good morning" });
    await button(row, "Delete greeting").click();
    await button(dialog, "Delete variable greeting").click();
    await main(page).getByText("There is no variable yet").waitFor();
    await expect(site.call("GET", "/api/v2/variables/greeting")).rejects.toThrow("404");
    await page.context().close();
  });
});

describe("a DAG file that does not load", () => {
  it("is shown with its wrong line on open pages, until it is fixed", async () => {
    const file = join(site.server.folder, "dags", "lines.ts");
    const source = await readFile(file, "utf8");
    const wrongLine = /^> +\d+ \| .*dag\("talk" \(d\)/;
    const errors = await site.visit("/errors");
    const dag = await errors.context().newPage();
    await dag.goto("/dags/lines");
    await main(errors).getByText("Every file loads").waitFor();
    await dag.getByRole("heading", { name: "lines" }).waitFor();
    await isLive(errors, dag);
    await mark(errors, dag);
    try {
      await writeFile(file, source.replace('dag("talk", (d)', 'dag("talk" (d)'));
      await main(errors).getByText("1 file does not load").waitFor();
      await main(errors).getByText(wrongLine).waitFor();
      const alert = dag.getByRole("alert").filter({ hasText: "lines.ts has not loaded" });
      await alert.getByText(wrongLine).waitFor();
      await writeFile(file, source);
      await main(errors).getByText("Every file loads").waitFor();
      await alert.waitFor({ state: "detached" });
    } finally {
      await writeFile(file, source);
    }
    expect(await Promise.all([errors, dag].map(isMarked))).toEqual([true, true]);
    await errors.context().close();
  });
});

describe("texts of authors", () => {
  it("are shown as text on every page", async () => {
    const { dag_runs: runs } = await site.call<{ dag_runs: { dag_run_id: string }[] }>(
      "GET",
      "/api/v2/dags/hostile/dagRuns",
    );
    const runId = runs[0]!.dag_run_id;
    await site.ended("hostile", runId);
    const run = `/dags/hostile/runs/${encodeURIComponent(runId)}`;
    await site.call("PATCH", `/api/v2${run.replace("/runs/", "/dagRuns/")}`, { note: HOSTILE });
    await site.call("POST", "/api/v2/variables", { key: "hostile", value: HOSTILE, description: HOSTILE });
    await site.call("POST", "/api/v2/pools", { name: HOSTILE, slots: 1 });
    const page = await site.visit("/");
    for (const path of [
      "/",
      "/dags?q=hostile",
      "/dags/hostile",
      "/dags/hostile?tab=runs",
      "/dags/hostile?tab=code",
      `/dags/hostile?run=${encodeURIComponent(runId)}&task=fail`,
      "/runs?dag=hostile",
      run,
      `${run}/tasks/fail`,
      `${run}/tasks/tell`,
      `${run}/tasks/tell?tab=io`,
      "/variables",
      "/pools",
      "/audit",
    ]) {
      await page.goto(path);
      await main(page)
        .getByText(/<img src=x onerror=.*globalThis\.hacked=1/)
        .filter({ visible: true })
        .first()
        .waitFor()
        .catch((error: Error) => {
          throw new Error(`${path}: ${error.message}`);
        });
      expect([
        path,
        await page.locator('img[src="x"], a[href^="javascript:" i]').count(),
        await page.evaluate("globalThis.hacked"),
      ]).toEqual([path, 0, undefined]);
    }
    await site.call("DELETE", "/api/v2/variables/hostile");
    await site.call("DELETE", `/api/v2/pools/${encodeURIComponent(HOSTILE)}`);
    await page.context().close();
  });
});

const HOSTILE = `<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>`;

describe("a signal", () => {
  it("sent from its page resumes the task that waits, and open pages follow", async () => {
    const { dag_runs: runs } = await site.call<{ dag_runs: { dag_run_id: string }[] }>(
      "GET",
      "/api/v2/dags/waits/dagRuns",
    );
    const path = `/dags/waits/runs/${encodeURIComponent(runs[0]!.dag_run_id)}/tasks/wait`;
    const page = await site.visit("/signals");
    const [waiting, task] = [await page.context().newPage(), await page.context().newPage()];
    await Promise.all([waiting.goto("/waiting?dag=waits"), task.goto(path)]);
    await main(waiting).getByText("partner.landed").waitFor();
    await task.getByRole("heading", { name: /Deferred/ }).waitFor();
    await isLive(page, waiting, task);
    await mark(waiting, task);
    await button(page, "Send signal…").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Key").fill("partner.landed");
    await dialog.getByLabel("Value").fill('{"rows": ');
    await dialog.getByText(/^Not JSON/).waitFor();
    expect(await button(dialog, "Send signal").isDisabled()).toBe(true);
    await dialog.getByLabel("Value").fill('{"rows": 7}');
    await button(dialog, "Send signal").click();
    await page.getByText("Signal partner.landed is stored").waitFor();
    await page.getByRole("region", { name: "Signals" }).getByText("partner.landed").waitFor();
    await main(waiting).getByText("No task waits for this").waitFor();
    await task.getByRole("heading", { name: /Success/ }).waitFor();
    expect(await Promise.all([waiting, task].map(isMarked))).toEqual([true, true]);
    await page.context().close();
  });
});

describe("tabs", () => {
  it("share one live stream: a change appears in 2 tabs, and in 20", async () => {
    const proxy = await StreamProxy.to(site.url);
    const shows = (tabs: readonly Page[], text: string) =>
      Promise.all(tabs.map((tab) => main(tab).getByText(text, { exact: true }).waitFor()));
    try {
      const first = await site.visit("/pools", { url: proxy.url });
      const open = async () => {
        const tab = await first.context().newPage();
        await tab.goto("/pools");
        return tab;
      };
      const tabs = [first, await open()];
      await shows(tabs, "default_pool");
      await isLive(...tabs);
      await site.call("POST", "/api/v2/pools", { name: "for_two", slots: 1 });
      await shows(tabs, "for_two");
      tabs.push(...(await Promise.all(Array.from({ length: 18 }, open))));
      await shows(tabs, "for_two");
      await isLive(...tabs);
      await site.call("POST", "/api/v2/pools", { name: "for_twenty", slots: 1 });
      await shows(tabs, "for_twenty");
      expect([proxy.open, proxy.mostOpen]).toEqual([1, 1]);
      await first.context().close();
    } finally {
      proxy.close();
    }
  }, 120_000);
});

it("requests nothing from another origin, and logs no error", () => {
  expect(site.complaints).toEqual([]);
});
