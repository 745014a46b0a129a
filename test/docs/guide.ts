/** Reading the project's own Markdown: pages, code blocks, links. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

export interface CodeBlock {
  readonly page: string;
  readonly language: string;
  /** The text after the language: for a module, its file name. */
  readonly title: string;
  readonly text: string;
  readonly line: number;
}

/** All pages of the documentation, from the root. */
export function pages(): string[] {
  return globSync(["*.md", "docs/**/*.md"], { cwd: ROOT })
    .map((path) => path.replaceAll("\\", "/"))
    .sort();
}

export function textOf(page: string): string {
  return readFileSync(join(ROOT, page), "utf8");
}

export function blocksOf(page: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: { language: string; title: string; line: number; lines: string[] } | null = null;
  textOf(page)
    .split("\n")
    .forEach((line, index) => {
      const fence = /^```(\S*)\s*(.*)$/.exec(line);
      if (!fence) open?.lines.push(line);
      else if (!open) open = { language: fence[1] ?? "", title: fence[2] ?? "", line: index + 1, lines: [] };
      else {
        const { lines, ...facts } = open;
        blocks.push({ page, ...facts, text: `${lines.join("\n")}\n` });
        open = null;
      }
    });
  return blocks;
}

/** The lines of a page outside its code blocks. */
export function proseOf(page: string): string {
  return textOf(page).replace(/^```[\s\S]*?^```$/gm, "");
}
