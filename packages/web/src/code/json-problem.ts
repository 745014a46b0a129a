/** Where a text stops being JSON. */
import { json } from "@codemirror/lang-json";
import { ensureSyntaxTree } from "@codemirror/language";
import { EditorState } from "@codemirror/state";

export interface JsonProblem {
  readonly from: number;
  readonly to: number;
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

const PARSE_MS = 200;

/** Null for JSON, and for an empty text. */
export function jsonProblem(text: string): JsonProblem | null {
  if (text.trim() === "") return null;
  let message: string;
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    message = (error as Error).message;
  }
  // The messages of browsers differ, and some have no position: the place is that of the first error in the syntax tree.
  const state = EditorState.create({ doc: text, extensions: json() });
  let from = text.trimEnd().length;
  ensureSyntaxTree(state, text.length, PARSE_MS)?.iterate({
    enter: (node) => {
      if (node.type.isError && node.from < from) from = node.from;
    },
  });
  const { number, to: end } = state.doc.lineAt(from);
  return {
    from: Math.min(from, Math.max(0, end - 1)),
    to: Math.min(end, from + 1),
    line: number,
    message: message.replace(/ in JSON at position .*| \(line \d+ column \d+\)/s, ""),
  };
}
