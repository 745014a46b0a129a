/** A real standalone with the DAGs of test/dags, the built UI, and a real browser that reaches nothing else. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { StandaloneProcess } from "../../../cli/test/support/standalone-process.ts";
import { launchBrowser } from "./browser.ts";

const BUILD = join(import.meta.dirname, "../../../../scripts/build-web.ts");

/** In a process of its own: it sets the mode of React for the whole process. */
const buildWeb = () => promisify(execFile)(process.execPath, [BUILD]);

export interface Visit {
  readonly scheme?: "light" | "dark";
  readonly width?: number;
  readonly signedIn?: boolean;
  /** Of a proxy in front of the server. */
  readonly url?: string;
}

export class Site {
  readonly url: string;
  readonly token: string;
  readonly server: StandaloneProcess;
  readonly #browser: Browser;
  /** Messages of pages that no page should have. */
  readonly complaints: string[] = [];

  private constructor(server: StandaloneProcess, browser: Browser, url: string, token: string) {
    this.server = server;
    this.#browser = browser;
    this.url = url;
    this.token = token;
  }

  static async open(): Promise<Site> {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-web-"));
    await cp(join(import.meta.dirname, "..", "dags"), join(folder, "dags"), { recursive: true });
    // Packages that the DAGs import besides the SDK.
    await symlink(join(import.meta.dirname, "../../../../node_modules"), join(folder, "node_modules"));
    const [server, browser] = await Promise.all([
      buildWeb().then(() => StandaloneProcess.startOn(folder)),
      launchBrowser(),
    ]);
    // All DAGs are loaded once these have run; the one without a schedule is named.
    await Promise.all([/✗ hostile/, /loaded:.*\borders\b/].map((text) => server.until(text)));
    const { url } = await server.about();
    return new Site(server, browser, url, (await readFile(join(server.home, "token"), "utf8")).trim());
  }

  async close(): Promise<void> {
    await this.#browser.close();
    await this.server.remove();
  }

  /** A page in a browser profile of its own, at an address of the UI. */
  async visit(
    path: string,
    { scheme = "light", width = 1440, signedIn = true, url = this.url }: Visit = {},
  ): Promise<Page> {
    const context = await this.#browser.newContext({
      baseURL: url,
      colorScheme: scheme,
      reducedMotion: "reduce",
      viewport: { width, height: width < 600 ? 844 : 900 },
    });
    if (signedIn) await this.signIn(context);
    await context.route(
      (address) => address.origin !== url,
      (route) => {
        this.complaints.push(`request for ${route.request().url()}`);
        return route.abort();
      },
    );
    context.setDefaultTimeout(30_000);
    context.on("weberror", (failure) => {
      const error = failure.error();
      this.complaints.push(`${failure.page()?.url()}: ${error.stack ?? error.message}`);
    });
    context.on("console", (message) => {
      if (message.type() === "error" && !/status of 4\d\d/.test(message.text()))
        this.complaints.push(`${message.page()?.url()}: ${message.text()}`);
    });
    const page = await context.newPage();
    await page.goto(path);
    return page;
  }

  async signIn(context: BrowserContext): Promise<void> {
    const response = await context.request.post(`${this.url}/ui/session`, {
      data: { token: this.token },
      headers: { "x-tradewind-csrf": "1", "sec-fetch-site": "same-origin" },
    });
    if (response.status() !== 204) throw new Error(`sign-in: ${response.status()} ${await response.text()}`);
  }

  /** Calls the REST API. */
  async call<Answer = unknown>(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as Answer;
  }

  /** Starts a run, and waits until it has ended. */
  async run(dagId: string, runId: string, conf: object = {}): Promise<void> {
    const runs = `/api/v2/dags/${dagId}/dagRuns`;
    await this.call("POST", runs, { dag_run_id: runId, conf });
    await this.ended(dagId, runId);
  }

  async tryNumber(dagId: string, runId: string, taskId: string): Promise<number> {
    const path = `/api/v2/dags/${dagId}/dagRuns/${runId}/taskInstances/${taskId}`;
    return (await this.call<{ readonly try_number: number }>("GET", path)).try_number;
  }

  async ended(dagId: string, runId: string): Promise<void> {
    await fetch(`${this.url}/api/v2/dags/${dagId}/dagRuns/${runId}/wait?interval=1`, {
      headers: { authorization: `Bearer ${this.token}` },
    }).then((response) => response.text());
  }
}
