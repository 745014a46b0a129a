/**
 * Takes the screenshots of the documentation, docs/images: a real standalone with the DAGs of packages/web/test/demo, and a real
 * browser. Waits until there is something to see of everything.
 */
import { cp, mkdir, mkdtemp, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { buildWeb } from "../../../scripts/build-web.ts";
import { StandaloneProcess } from "../../cli/test/support/standalone-process.ts";
import { launchBrowser } from "../test/support/browser.ts";

const ROOT = join(import.meta.dirname, "../../..");
const IMAGES = join(ROOT, "docs/images");
const READY_MS = 360_000;
const QUALITY = 90;

interface Shot {
  readonly name: string;
  readonly path: string;
  readonly scheme?: "light" | "dark";
  readonly width?: number;
  readonly height?: number;
  /** What is visible once the page is complete. */
  readonly shows: string;
}

interface Run {
  readonly dag_run_id: string;
}

class Demo {
  readonly #server: StandaloneProcess;
  readonly #browser: Browser;
  readonly #url: string;
  readonly #token: string;

  private constructor(server: StandaloneProcess, browser: Browser, url: string, token: string) {
    this.#server = server;
    this.#browser = browser;
    this.#url = url;
    this.#token = token;
  }

  static async open(): Promise<Demo> {
    await buildWeb();
    const folder = await mkdtemp(join(tmpdir(), "tradewind-screenshots-"));
    await cp(join(ROOT, "packages/web/test/demo/dags"), join(folder, "dags"), { recursive: true });
    // Packages that the DAGs import besides the SDK.
    await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const server = await StandaloneProcess.startOn(folder, ["--parallelism", "16"]);
    const browser = await launchBrowser();
    const token = (await readFile(join(server.home, "token"), "utf8")).trim();
    return new Demo(server, browser, (await server.about()).url, token);
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.#server.remove();
  }

  /** The newest run of a DAG in this state, of those that are at least this many. */
  async run(dagId: string, state: string, count = 1): Promise<string> {
    const query = `state=${state}&order_by=-run_after&limit=${count}`;
    for (const end = Date.now() + READY_MS; Date.now() < end; await sleep(500)) {
      const runs = await this.#runs(dagId, query);
      if (runs.length >= count) return encodeURIComponent(runs[0]!.dag_run_id);
    }
    throw new Error(`${dagId} has no ${count} runs in state ${state} after ${READY_MS / 1_000} s`);
  }

  /** Waits until a DAG has no run in progress. */
  async idle(dagId: string): Promise<void> {
    for (const end = Date.now() + READY_MS; Date.now() < end; await sleep(1_000)) {
      if ((await this.#runs(dagId, "state=running&state=queued&limit=1")).length === 0) return;
    }
    throw new Error(`${dagId} has runs in progress after ${READY_MS / 1_000} s`);
  }

  async #runs(dagId: string, query: string): Promise<readonly Run[]> {
    const response = await fetch(`${this.#url}/api/v2/dags/${dagId}/dagRuns?${query}`, {
      headers: { authorization: `Bearer ${this.#token}` },
    });
    // Its file is not loaded yet.
    if (response.status === 404) return [];
    if (!response.ok) throw new Error(`runs of ${dagId}: ${response.status} ${await response.text()}`);
    return ((await response.json()) as { dag_runs: readonly Run[] }).dag_runs;
  }

  async take({ name, path, scheme = "light", width = 1440, height = 900, shows }: Shot): Promise<void> {
    const context = await this.#browser.newContext({
      baseURL: this.#url,
      colorScheme: scheme,
      locale: "en-GB",
      timezoneId: "UTC",
      reducedMotion: "reduce",
      viewport: { width, height },
    });
    const { status, statusText } = await context.request
      .post("/ui/session", {
        data: { token: this.#token },
        headers: { "x-tradewind-csrf": "1", "sec-fetch-site": "same-origin" },
      })
      .then((response) => ({ status: response.status(), statusText: response.statusText() }));
    if (status !== 204) throw new Error(`sign-in: ${status} ${statusText}`);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(path);
    await page.getByText(shows).filter({ visible: true }).first().waitFor();
    await settled(page);
    await writeFile(join(IMAGES, `${name}.webp`), await imageOf(page));
    await context.close();
    console.log(`docs/images/${name}.webp  ${path}`);
  }
}

/** As WebP, which takes a third of a PNG; Playwright itself does not offer it. */
async function imageOf(page: Page): Promise<Buffer> {
  const browser = await page.context().newCDPSession(page);
  const { data } = await browser.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  return Buffer.from(data, "base64");
}

/**
 * Fonts are loaded, and the number of elements has not changed for a second: lists and canvases are drawn. A list that keeps
 * growing gets five seconds.
 */
async function settled(page: Page): Promise<void> {
  await page.evaluate("document.fonts.ready.then(() => undefined)");
  let before = -1;
  for (let still = 0, looks = 0; still < 4 && looks < 20; looks += 1, await sleep(250)) {
    const now = await page.locator("main *").count();
    still = now === before ? still + 1 : 0;
    before = now;
  }
}

await mkdir(IMAGES, { recursive: true });
const demo = await Demo.open();
try {
  await demo.run("sales_daily", "success", 50);
  await demo.idle("sales_daily");
  const failed = await demo.run("sales_daily", "failed", 4);
  const settlement = await demo.run("payments_settlement", "failed");
  await demo.run("partner_ingest", "running");
  await demo.run("orders_stream", "running");
  await demo.run("warehouse_core", "success");
  const run = `/dags/sales_daily/runs/${failed}`;
  const shots: readonly Shot[] = [
    { name: "home", path: "/", shows: "reconcile_ledger" },
    { name: "home-dark", path: "/", scheme: "dark", shows: "reconcile_ledger" },
    { name: "dags", path: "/dags", shows: "sales_daily" },
    { name: "dag", path: "/dags/sales_daily", shows: "write_warehouse" },
    { name: "run", path: run, shows: "write_warehouse" },
    { name: "run-dark", path: run, scheme: "dark", shows: "write_warehouse" },
    {
      name: "task",
      path: `/dags/payments_settlement/runs/${settlement}/tasks/reconcile_ledger`,
      shows: "LedgerMismatch",
    },
    { name: "signals", path: "/signals", shows: "orders.batch" },
    { name: "run-narrow", path: run, width: 390, height: 844, shows: "write_warehouse" },
  ];
  for (const shot of shots) await demo.take(shot);
} finally {
  await demo.close();
}
