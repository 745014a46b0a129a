/** What the pages are measured on: a standalone in its own process, its database, and a browser that is signed in. */
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StandaloneProcess } from "../../packages/cli/test/support/standalone-process.ts";
import { openDatabase } from "../../packages/engine/src/process/parts/open-database.ts";
import { resolveConfig } from "../../packages/engine/src/service/config.ts";
import { adhoc, type Database } from "../../packages/engine/src/store/database/database.ts";
import {
  type Browser,
  type BrowserContext,
  launchBrowser,
  type Page,
} from "../../packages/web/test/support/browser.ts";
import { buildWeb } from "../../scripts/build-web.ts";
import { until } from "../until.ts";
import { PROBE } from "./probe.ts";

const LOADED = adhoc("SELECT count(*)::int AS n FROM dag WHERE version_id IS NOT NULL");

export class Stage {
  readonly server: StandaloneProcess;
  readonly database: Database;
  readonly browser: Browser;
  readonly url: string;
  readonly #token: string;
  readonly #closeDatabase: () => Promise<void>;

  private constructor(
    server: StandaloneProcess,
    browser: Browser,
    opened: { database: Database; stop(): Promise<void> },
    access: { url: string; token: string },
  ) {
    this.server = server;
    this.browser = browser;
    this.database = opened.database;
    this.#closeDatabase = opened.stop;
    this.url = access.url;
    this.#token = access.token;
  }

  static async open(files: Readonly<Record<string, string>>): Promise<Stage> {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-bench-web-"));
    await mkdir(join(folder, "dags"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, "dags", name), text);
    await buildWeb();
    const server = await StandaloneProcess.startOn(folder);
    const browser = await launchBrowser();
    const opened = await openDatabase(resolveConfig({ home: server.home }, {}), {
      applicationName: "tradewind bench",
    });
    const { url } = await server.about();
    const token = (await readFile(join(server.home, "token"), "utf8")).trim();
    const wanted = Object.keys(files).length;
    await until(
      `${wanted} DAGs are loaded`,
      async () => (await opened.database.one<{ n: number }>(LOADED))?.n === wanted,
    );
    return new Stage(server, browser, opened, { url, token });
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.#closeDatabase();
    await this.server.remove();
  }

  /** A browser profile of its own: nothing is cached. */
  async profile(): Promise<BrowserContext> {
    const context = await this.browser.newContext({
      baseURL: this.url,
      viewport: { width: 1440, height: 900 },
    });
    context.setDefaultTimeout(60_000);
    await context.addInitScript(PROBE);
    const response = await context.request.post(`${this.url}/ui/session`, {
      data: { token: this.#token },
      headers: { "x-tradewind-csrf": "1", "sec-fetch-site": "same-origin" },
    });
    if (response.status() !== 204) throw new Error(`sign-in: ${response.status()} ${await response.text()}`);
    return context;
  }

  /** Opens a page, calls back, and closes it. */
  async visit<T>(path: string, work: (page: Page) => Promise<T>, profile?: BrowserContext): Promise<T> {
    const context = profile ?? (await this.profile());
    const page = await context.newPage();
    try {
      await page.goto(path);
      return await work(page);
    } finally {
      await page.close();
      if (profile === undefined) await context.close();
    }
  }

  /** Calls an API route as a program, and measures its answer. */
  async get(path: string): Promise<{ readonly ms: number; readonly bytes: number; readonly sent: number }> {
    const started = performance.now();
    const response = await fetch(`${this.url}${path}`, {
      headers: { authorization: `Bearer ${this.#token}`, "accept-encoding": "gzip" },
    });
    const { byteLength } = await response.arrayBuffer();
    const ms = performance.now() - started;
    if (!response.ok) throw new Error(`GET ${path}: ${response.status}`);
    return { ms, bytes: byteLength, sent: Number(response.headers.get("content-length") ?? 0) };
  }

  async post(path: string, body: object): Promise<void> {
    const response = await fetch(`${this.url}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
  }
}
