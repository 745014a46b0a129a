/**
 * What two failures with the same cause have in common: the reason without the parts that differ from run to run. Ids, numbers,
 * dates, paths and quoted texts are replaced by placeholders.
 */

/** Longer reasons are compared up to here: what follows is often output of the failed command. */
const COMPARED = 1_000;

/** In this order: a part of one kind may look like another. */
const VARIABLE: readonly (readonly [RegExp, string])[] = [
  [/\b[a-z][a-z\d+.-]*:\/\/[^\s"'`<>()]+/gi, "<url>"],
  [
    /"(?:[^"\\\n]|\\.)*"|`[^`\n]*`|(?<![\p{L}\d])'(?:[^'\\\n]|\\.)*'(?![\p{L}\d])|[“„«][^”“»\n]*[”“»]/gu,
    "<text>",
  ],
  [/\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, "<address>"],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?/g, "<time>"],
  [/\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b/g, "<time>"],
  [/(?<![\w/])(?:[A-Za-z]:)?(?:\.{0,2}[\\/][\w.@~+=%-]+){2,}[\\/]?(?::\d+(?::\d+)?)?/g, "<path>"],
  [/\b[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}\b/gi, "<id>"],
  [/\b0x[\da-f]+\b/gi, "<id>"],
  // Words of letters and digits: at least one digit after a letter or a digit, and not the name of a thing such as utf8.
  [/\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]*(?:\d[\w-]*){3,}\b/gi, "<id>"],
  [/(?<![\w.])[+-]?\d+(?:[.,_]\d+)*(?:e[+-]?\d+)?%?/gi, "<number>"],
];

/** null: there is no reason. */
export function failureFingerprint(reason: string | null): string | null {
  if (reason === null || reason.trim() === "") return null;
  let text = reason.slice(0, COMPARED);
  for (const [pattern, placeholder] of VARIABLE) text = text.replace(pattern, placeholder);
  return text.replace(/\s+/g, " ").trim().slice(0, COMPARED);
}
