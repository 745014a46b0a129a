/**
 * Generates parts of the docs: `npm run docs`. They are between markers,
 *
 *   <!-- generated: name --> … <!-- end -->
 *
 * and test/docs fails if a part differs from its generated text.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runStateDiagram, taskStateDiagram } from "@tradewind/engine/model";

const PARTS: Readonly<Record<string, () => string>> = {
  "task states": () => mermaid(taskStateDiagram()),
  "run states": () => mermaid(runStateDiagram()),
};

export const ARCHITECTURE = join(import.meta.dirname, "../docs/architecture.md");

/** The text with every generated part updated. Each part must occur exactly once. */
export function withGeneratedParts(text: string): string {
  return Object.entries(PARTS).reduce((before, [name, draw]) => {
    const begin = `<!-- generated: ${name} -->\n`;
    const [head, tail, ...more] = before.split(begin);
    const end = tail?.indexOf("<!-- end -->") ?? -1;
    if (head === undefined || tail === undefined || end < 0 || more.length > 0)
      throw new Error(`there must be one "${begin.trim()}" with an "<!-- end -->" after it`);
    return head + begin + draw() + tail.slice(end);
  }, text);
}

function mermaid(diagram: string): string {
  return `\`\`\`mermaid\n${diagram.trimEnd()}\n\`\`\`\n`;
}

if (import.meta.main) await writeFile(ARCHITECTURE, withGeneratedParts(await readFile(ARCHITECTURE, "utf8")));
