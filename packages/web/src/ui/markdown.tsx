/** Markdown of authors: paragraphs, lists, headings, code, emphasis, and links to the web. HTML in it is shown as text. */
import { type Block, blocksOf, type Span, spansOf } from "./markdown-blocks.ts";

export function Markdown({ text }: { readonly text: string }) {
  return (
    <div className="flex flex-col gap-2 break-words">
      {blocksOf(text).map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block is its place
        <BlockView key={index} block={block} />
      ))}
    </div>
  );
}

function BlockView({ block }: { readonly block: Block }) {
  switch (block.kind) {
    case "code":
      return <pre className="overflow-auto rounded-md border border-line bg-raised p-2">{block.text}</pre>;
    case "heading":
      return <p className="font-semibold">{inline(block.text)}</p>;
    case "list": {
      const List = block.isNumbered ? "ol" : "ul";
      return (
        <List className={block.isNumbered ? "list-decimal pl-5" : "list-disc pl-5"}>
          {block.items.map((item, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: an item is its place
            <li key={index}>{inline(item)}</li>
          ))}
        </List>
      );
    }
    case "paragraph":
      return <p className="whitespace-pre-line">{inline(block.text)}</p>;
  }
}

function inline(text: string) {
  return spansOf(text).map((span, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a span is its place
    <SpanView key={index} span={span} />
  ));
}

function SpanView({ span }: { readonly span: Span }) {
  switch (span.kind) {
    case "code":
      return <code>{span.text}</code>;
    case "strong":
      return <strong>{span.text}</strong>;
    case "emphasis":
      return <em>{span.text}</em>;
    case "link":
      return (
        <a href={span.href} target="_blank" rel="noreferrer noopener" className="link">
          {span.text}
        </a>
      );
    case "text":
      return span.text;
  }
}
