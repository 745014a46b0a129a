/** Code to read, or two versions of it as one text with what was removed and added. */
import { unifiedMergeView } from "@codemirror/merge";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { editorSetup, type Language, readOnly } from "./editor.ts";

export default function CodeView({
  text,
  before,
  language = "typescript",
  label,
}: {
  readonly text: string;
  /** The text to compare with. */
  readonly before?: string | undefined;
  readonly language?: Language;
  readonly label: string;
}) {
  const parent = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const view = new EditorView({
      doc: text,
      parent: parent.current!,
      extensions: [
        editorSetup(language),
        readOnly(),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        before === undefined
          ? []
          : unifiedMergeView({
              original: before,
              mergeControls: false,
              gutter: true,
              collapseUnchanged: { margin: 4, minSize: 8 },
            }),
      ],
    });
    return () => view.destroy();
  }, [text, before, language, label]);
  return <div ref={parent} className="h-full min-h-0" />;
}
