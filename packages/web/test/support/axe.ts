import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Violations of WCAG 2.2 AA on the page as it is now: rule, and the elements. */
export async function violations(page: Page): Promise<string[]> {
  // Not as an element: the content security policy of the page would refuse it.
  await page.evaluate(readFileSync(AXE, "utf8"));
  return page.evaluate(async (rules) => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(
          options: object,
        ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
      };
    };
    const found = await axe.run({ runOnly: { type: "tag", values: rules } });
    return found.violations.flatMap(({ id, nodes }) =>
      nodes
        .slice(0, 3)
        .map(
          ({ html, failureSummary }) =>
            `${id}: ${html.slice(0, 200)} ${failureSummary?.split("\n")[1] ?? ""}`,
        ),
    );
  }, RULES);
}
