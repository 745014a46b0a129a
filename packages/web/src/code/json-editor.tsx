/** JSON that is written, with the place of its first error. Loaded only where it is used. */
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { Compartment, type Extension } from "@codemirror/state";
import { Decoration, EditorView, keymap } from "@codemirror/view";
import { useEffect, useId, useRef } from "react";
import { editorSetup } from "./editor.ts";
import { jsonProblem } from "./json-problem.ts";

export default function JsonEditor({
  value,
  onChange,
  label,
}: {
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly label: string;
}) {
  const parent = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const change = useRef(onChange);
  change.current = onChange;
  const first = useRef(value);
  const noteId = useId();
  const problem = jsonProblem(value);
  useEffect(() => {
    const editor = new EditorView({
      doc: first.current,
      parent: parent.current!,
      extensions: [
        editorSetup("json"),
        history(),
        keymap.of([...historyKeymap, ...defaultKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": noteId }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) change.current(state.doc.toString());
        }),
        marked.of([]),
      ],
    });
    view.current = editor;
    return () => editor.destroy();
  }, [label, noteId]);
  useEffect(() => {
    const { state } = view.current!;
    // Set from outside: the defaults, or the values of an earlier run.
    if (state.doc.toString() !== value)
      view.current!.dispatch({ changes: { from: 0, to: state.doc.length, insert: value } });
    const found = jsonProblem(value);
    view.current!.dispatch({ effects: marked.reconfigure(found === null ? [] : markOf(found)) });
  }, [value]);
  return (
    <div>
      <div
        ref={parent}
        className="max-h-80 min-h-24 overflow-auto rounded-md border border-line-strong bg-surface focus-within:outline-2 focus-within:outline-accent"
      />
      <p id={noteId} role="status" className="mt-1 min-h-5 text-sm text-danger">
        {problem !== null && `Line ${problem.line}: ${problem.message}`}
      </p>
    </div>
  );
}

const marked = new Compartment();

function markOf({ from, to }: { readonly from: number; readonly to: number }): Extension {
  const mark = Decoration.mark({ class: "underline decoration-wavy decoration-danger" });
  const line = Decoration.line({ class: "bg-danger-soft" });
  return [
    EditorView.contentAttributes.of({ "aria-invalid": "true" }),
    EditorView.decorations.of((view) => {
      const end = view.state.doc.length;
      const at = view.state.doc.lineAt(Math.min(from, end)).from;
      const range = to > from && to <= end ? [mark.range(from, to)] : [];
      return Decoration.set([line.range(at), ...range], true);
    }),
  ];
}
