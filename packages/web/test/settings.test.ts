/** Files of settings in a real browser, the same as those of the command line; and what can be undone. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCaptured } from "../../cli/test/support/captured-host.ts";
import { violations } from "./support/axe.ts";
import { Site } from "./support/site.ts";

let site: Site;

beforeAll(async () => {
  site = await Site.open();
  await site.call("POST", "/api/v2/pools", { name: "gpu", slots: 2, description: "cards" });
  await site.call("POST", "/api/v2/variables", { key: "region", value: "eu" });
  await site.call("POST", "/api/v2/variables", { key: "api_key", value: "secret" });
  await site.call("POST", "/api/v2/connections", {
    ...{ connection_id: "warehouse", conn_type: "postgres", host: "db.example.com", password: "secret" },
  });
}, 120_000);
afterAll(() => site?.close());

const main = (page: Page) => page.locator("main");
const dialogOf = (page: Page) => page.getByRole("dialog");

async function openMenu(page: Page, item: string): Promise<void> {
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("menuitem", { name: item }).click();
}

async function choose(page: Page, content: unknown): Promise<void> {
  await dialogOf(page)
    .getByLabel("File")
    .setInputFiles({
      name: "settings.json",
      mimeType: "application/json",
      buffer: Buffer.from(typeof content === "string" ? content : JSON.stringify(content)),
    });
}

describe("an export", () => {
  it.each(["pools", "variables", "connections"])("of %s is that of the command line", async (collection) => {
    const page = await site.visit(`/${collection}`);
    await main(page).getByRole("row").nth(1).waitFor();
    const download = page.waitForEvent("download");
    await openMenu(page, "Export all");
    const file = await download;
    expect(file.suggestedFilename()).toBe(`${collection}.json`);
    const text = await readFile(await file.path(), "utf8");
    const { stdout } = await runCaptured([collection, "export"], {
      env: { TRADEWIND_HOME: site.server.home },
    });
    expect(JSON.parse(text)).toEqual(JSON.parse(stdout));
    expect(text).not.toContain("secret");
    await page.context().close();
  });
});

describe("an import", () => {
  it("shows what it creates and changes before it does, and leaves the others", async () => {
    const page = await site.visit("/pools");
    await openMenu(page, "Import…");
    await dialogOf(page).getByText("For example:").waitFor();
    expect(await violations(page)).toEqual([]);
    await choose(page, {
      gpu: { slots: 3, description: "cards" },
      tape: { slots: 1 },
      default_pool: { slots: 128 },
    });
    const changes = dialogOf(page).getByRole("region", { name: "What will change" });
    await changes.getByRole("listitem").filter({ hasText: "gpu" }).getByText("changed: slots").waitFor();
    await changes.getByRole("listitem").filter({ hasText: "tape" }).getByText("created").waitFor();
    await changes.getByRole("listitem").filter({ hasText: "default_pool" }).getByText("unchanged").waitFor();
    expect(await violations(page)).toEqual([]);
    await expect(site.call("GET", "/api/v2/pools/tape")).rejects.toThrow("404");
    await dialogOf(page).getByRole("button", { name: "Import 2 pools" }).click();
    await page.getByText("Imported 2 pools").waitFor();
    expect(await site.call("GET", "/api/v2/pools/gpu")).toMatchObject({ slots: 3 });
    expect(await site.call("GET", "/api/v2/pools/tape")).toMatchObject({ slots: 1 });
    await page.context().close();
  });

  it("shows the values of variables that it creates, without those of secrets", async () => {
    const page = await site.visit("/variables");
    await openMenu(page, "Import…");
    await choose(page, { zone: "eu-1", limits: { rows: 3 }, api_token: "hush" });
    const changes = dialogOf(page).getByRole("region", { name: "What will change" });
    await changes.getByRole("listitem").filter({ hasText: "zone" }).getByText("eu-1").waitFor();
    await changes.getByRole("listitem").filter({ hasText: "limits" }).getByText('{"rows":3}').waitFor();
    await changes.getByRole("listitem").filter({ hasText: "api_token" }).getByText("created").waitFor();
    expect(await changes.textContent()).not.toContain("hush");
    await page.context().close();
  });

  it("names invalid entries, also those that only the server finds", async () => {
    const page = await site.visit("/pools");
    await openMenu(page, "Import…");
    await choose(page, { gpu: 3 });
    await dialogOf(page).getByText("gpu: it must be an object").waitFor();
    await choose(page, { gpu: { slots: 3 }, tape: { slots: -7 } });
    await dialogOf(page)
      .getByText(/^tape\.slots: /)
      .waitFor();
    await choose(page, "{");
    await dialogOf(page)
      .getByText(/^This is not JSON/)
      .waitFor();
    await page.context().close();
  });

  it("copies the command, and no secret", async () => {
    const page = await site.visit("/connections");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await openMenu(page, "Import…");
    await choose(page, { lake: { conn_type: "aws", password: "hush" } });
    await dialogOf(page).getByRole("button", { name: "Import 1 connection", exact: true }).waitFor();
    await dialogOf(page).getByRole("button", { name: "Copy as…" }).click();
    expect(await page.getByRole("menuitem").allTextContents()).toEqual(["Copy as CLI"]);
    await page.getByRole("menuitem", { name: "Copy as CLI" }).click();
    await page.getByText("Copied as a CLI command").waitFor();
    expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(
      "tradewind connections import settings.json",
    );
    await page.context().close();
  });
});

describe("undo", () => {
  const undo = async (page: Page) => {
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText(/^Undone: /).waitFor();
  };

  it("gives a pool its former slots, and brings a deleted one back", async () => {
    const page = await site.visit("/pools");
    const before = await site.call<{ slots: number }>("GET", "/api/v2/pools/gpu");
    await main(page).getByRole("button", { name: "gpu", exact: true }).click();
    await dialogOf(page).getByLabel("Slots", { exact: true }).fill("9");
    await dialogOf(page).getByRole("button", { name: "Save pool" }).click();
    await undo(page);
    expect(await site.call("GET", "/api/v2/pools/gpu")).toMatchObject({ slots: before.slots });
    const next = await site.visit("/pools");
    await main(next).getByRole("button", { name: "Delete gpu" }).click();
    await dialogOf(next).getByRole("button", { name: "Delete pool gpu" }).click();
    await undo(next);
    expect(await site.call("GET", "/api/v2/pools/gpu")).toMatchObject({ ...before });
    await page.context().close();
    await next.context().close();
  });

  it("gives a variable its former value, and is not offered for a secret", async () => {
    const page = await site.visit("/variables");
    await main(page).getByRole("button", { name: "region", exact: true }).click();
    await dialogOf(page).getByLabel("Value").fill("us");
    await dialogOf(page).getByRole("button", { name: "Save variable" }).click();
    await undo(page);
    expect(await site.call("GET", "/api/v2/variables/region")).toMatchObject({ value: "eu" });
    await page.context().close();
    const secret = await site.visit("/variables");
    await main(secret).getByRole("button", { name: "api_key", exact: true }).click();
    await dialogOf(secret).getByLabel("Value").fill("other");
    await dialogOf(secret).getByRole("button", { name: "Save variable" }).click();
    await secret.getByText("Variable api_key is saved").waitFor();
    expect(await secret.getByRole("button", { name: "Undo" }).count()).toBe(0);
    await secret.context().close();
  });

  it("gives a connection its former host, unless a secret was changed, too", async () => {
    const host = async () => (await site.call<{ host: string }>("GET", "/api/v2/connections/warehouse")).host;
    const page = await site.visit("/connections");
    await main(page).getByRole("button", { name: "warehouse", exact: true }).click();
    await dialogOf(page).getByLabel("Host").fill("other.example.com");
    await dialogOf(page).getByRole("button", { name: "Save connection" }).click();
    await page.getByText("Connection warehouse is saved").waitFor();
    expect(await host()).toBe("other.example.com");
    await undo(page);
    expect(await host()).toBe("db.example.com");
    await page.context().close();
  });
});

it("logs no error", () => {
  expect(site.complaints).toEqual([]);
});
