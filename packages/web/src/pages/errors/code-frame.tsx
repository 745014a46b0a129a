import { cx } from "../../ui/class-names.ts";

/** The text of an import error: its message wraps, lines of code keep their columns, and the wrong line stands out. */
export function CodeFrame({ text }: { readonly text: string }) {
  const lines = text.split("\n");
  return (
    <div className="overflow-x-auto py-2 font-mono">
      {lines.map((line, index) => {
        const isCode = /^\s*>?\s*\d*\s*\|/.test(line);
        return (
          <div
            // biome-ignore lint/suspicious/noArrayIndexKey: the lines of one text, which never move
            key={index}
            className={cx(
              "px-3",
              isCode ? "whitespace-pre" : "break-words whitespace-pre-wrap",
              /^\s*>/.test(line) && "bg-danger-soft",
              /^\s*\|\s*\^/.test(line) && "text-danger",
            )}
          >
            {line || " "}
          </div>
        );
      })}
    </div>
  );
}
