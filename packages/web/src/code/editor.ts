/** Set-up of the editor: the colours of the theme, line numbers, folding. Loaded only where code is shown. */
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import {
  bracketMatching,
  codeFolding,
  foldGutter,
  HighlightStyle,
  syntaxHighlighting,
} from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: [tags.comment, tags.meta], color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.className], color: "var(--warn)" },
  { tag: [tags.propertyName, tags.variableName], color: "var(--text)" },
  { tag: tags.invalid, color: "var(--danger)" },
]);

const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "12px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.55", fontVariantLigatures: "none" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 8px 0 16px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-content ::selection": {
    backgroundColor: "var(--accent-soft)",
  },
  ".cm-foldPlaceholder": {
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line)",
    color: "var(--muted)",
  },
  ".cm-collapsedLines": { background: "var(--raised)", color: "var(--muted)", paddingLeft: "12px" },
  ".cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--diff-added) !important" },
  ".cm-deletedChunk": { backgroundColor: "var(--danger-soft) !important", paddingLeft: "6px" },
  ".cm-changedText": { background: "var(--diff-added-text) !important" },
  ".cm-deletedLine del": { textDecoration: "none" },
  ".cm-deletedChunk .cm-deletedText": {
    background: "color-mix(in oklab, var(--danger) 25%, transparent)",
    textDecoration: "none",
  },
});

export type Language = "typescript" | "json";

export function readOnly(): Extension {
  return [EditorState.readOnly.of(true), EditorView.editable.of(false)];
}

export function editorSetup(language: Language): Extension {
  return [
    lineNumbers(),
    highlightSpecialChars(),
    bracketMatching(),
    codeFolding(),
    foldGutter(),
    syntaxHighlighting(HIGHLIGHT),
    THEME,
    language === "json" ? json() : javascript({ typescript: true }),
  ];
}
