/** What an error says: its name, its message, and the first place of its stack in the code of the user. Pure. */

export interface Frame {
  readonly file: string;
  readonly line: number;
  /** Of the function; null if it has none. */
  readonly name: string | null;
}

/** `RangeError: too large` without a name if there is none. */
export function splitReason(reason: string): { readonly name: string | null; readonly message: string } {
  const [, name, message] = /^([A-Z]\w*(?:Error|Exception|Overflow|Failure)?): ([\s\S]*)$/.exec(reason) ?? [];
  return name === undefined ? { name: null, message: reason } : { name, message: message! };
}

/** The first frame of the last stack that is not in a package or in Node.js. */
export function firstUserFrame(text: string): Frame | null {
  const lines = text.split("\n");
  const frames = lines.map(frameOf);
  let last = frames.findLastIndex((frame) => frame !== null);
  if (last < 0) return null;
  while (last > 0 && frames[last - 1] !== null) last -= 1;
  for (let at = last; at < frames.length && frames[at] !== null; at += 1) {
    const frame = frames[at]!;
    if (!/node_modules|^node:/.test(frame.file)) return frame;
  }
  return null;
}

function frameOf(line: string): Frame | null {
  const [, name, bare, place] = /^\s*at (?:(?:async )?(.*?) \((.+)\)|(?:async )?(.+))$/.exec(line) ?? [];
  const [, file, number] = /^(.*?):(\d+)(?::\d+)?$/.exec(bare ?? place ?? "") ?? [];
  if (file === undefined) return null;
  return {
    file: file.replace(/^file:\/\//, "").replace(/^dags:\/*/, ""),
    line: Number(number),
    name: name === undefined || name === "<anonymous>" ? null : name,
  };
}

/** Lines of a program without the indent that all of them have. */
export function dedented(lines: readonly string[]): string[] {
  const indents = lines.filter((line) => line.trim() !== "").map((line) => line.search(/\S/));
  const least = Math.min(...indents);
  return lines.map((line) => line.slice(least));
}
