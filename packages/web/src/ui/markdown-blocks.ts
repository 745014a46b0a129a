/** The parts of Markdown that messages use. Anything else stays text. Pure. */

export type Block =
  | { readonly kind: "paragraph" | "heading" | "code"; readonly text: string }
  | { readonly kind: "list"; readonly isNumbered: boolean; readonly items: readonly string[] };

export type Span =
  | { readonly kind: "text" | "code" | "strong" | "emphasis"; readonly text: string }
  | { readonly kind: "link"; readonly text: string; readonly href: string };

const FENCE = /^\s*```/;
const HEADING = /^#{1,6}\s+(.*)$/;
const ITEM = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;

export function blocksOf(text: string): Block[] {
  const lines = text.split(/\r?\n/);
  const blocks: Block[] = [];
  let paragraph: string[] = [];
  const end = () => {
    if (paragraph.length > 0) blocks.push({ kind: "paragraph", text: paragraph.join("\n") });
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!;
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (FENCE.test(line)) {
      end();
      const close = lines.findIndex((each, index) => index > at && FENCE.test(each));
      const last = close < 0 ? lines.length : close;
      blocks.push({ kind: "code", text: lines.slice(at + 1, last).join("\n") });
      at = last;
    } else if (heading !== null) {
      end();
      blocks.push({ kind: "heading", text: heading[1]! });
    } else if (item !== null) {
      end();
      const isNumbered = item[1] !== undefined;
      const items: string[] = [];
      for (; at < lines.length; at += 1) {
        const next = ITEM.exec(lines[at]!);
        if (next === null || (next[1] !== undefined) !== isNumbered) break;
        items.push(next[2]!);
      }
      at -= 1;
      blocks.push({ kind: "list", isNumbered, items });
    } else if (line.trim() === "") end();
    else paragraph.push(line);
  }
  end();
  return blocks;
}

// Each alternative ends at the first possible place, so that the time grows with the length of the text.
const SPAN =
  /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|\[([^\][\n]+)\]\((https?:\/\/[^()\s]+)\)|(https?:\/\/[^\s<>()"'`]*[^\s<>()"'`.,;:!?])/g;

export function spansOf(text: string): Span[] {
  const spans: Span[] = [];
  let end = 0;
  for (const match of text.matchAll(SPAN)) {
    const [whole, code, strong, emphasis, label, href, url] = match;
    if (match.index > end) spans.push({ kind: "text", text: text.slice(end, match.index) });
    if (code !== undefined) spans.push({ kind: "code", text: code });
    else if (strong !== undefined) spans.push({ kind: "strong", text: strong });
    else if (emphasis !== undefined) spans.push({ kind: "emphasis", text: emphasis });
    else if (href !== undefined) spans.push({ kind: "link", text: label!, href });
    else spans.push({ kind: "link", text: url!, href: url! });
    end = match.index + whole.length;
  }
  if (end < text.length) spans.push({ kind: "text", text: text.slice(end) });
  return spans;
}
