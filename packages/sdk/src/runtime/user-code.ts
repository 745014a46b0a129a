/**
 * The only function that calls user code. Its name marks the boundary in stack traces: frames below it belong to the
 * SDK, in its source, its published form, or a bundle that mixes it with the author's code. (A bundler may append a
 * number to the name, so it is matched as a part.)
 */
export async function tradewindCallsUserCode<Args extends unknown[], R>(
  userCode: (...args: Args) => R,
  ...args: Args
): Promise<Awaited<R>> {
  return await userCode(...args);
}

/** The author's part of a stack, without frames of Node. */
export function authorsPart(stack: string): string {
  const lines = stack.split("\n");
  const border = lines.findIndex((line) => FRAME.test(line) && line.includes(tradewindCallsUserCode.name));
  return (border === -1 ? lines : lines.slice(0, border)).filter((line) => !NODE_FRAME.test(line)).join("\n");
}

/**
 * The same for an error that the SDK threw: only the author's frames show where the mistake is. An output that is
 * rejected after the author's code has returned has no such frame.
 */
export function withoutOurs(stack: string): string {
  const here = ownPlace();
  if (here === null) return authorsPart(stack);
  const lines = authorsPart(stack).split("\n");
  const isOurs = (line: string) => FRAME.test(line) && line.includes(here);
  const entry = lines.findIndex((line) => isOurs(line) && line.includes(ENTRY));
  return (entry === -1 ? lines : lines.slice(0, entry)).filter((line) => !isOurs(line)).join("\n");
}

/** The place of this code as a stack shows it: the folder of the package, or the file that it was bundled into. */
function ownPlace(): string | null {
  const place = / \((.+):\d+:\d+\)$/m.exec(new Error("where am I").stack ?? "")?.[1];
  return place?.replace(/runtime\/user-code\.\w+$/, "") ?? null;
}

/** The function of attempt.ts that the engine calls. */
const ENTRY = "runAttempt";
const FRAME = /^\s+at /;
const NODE_FRAME = /^\s+at .*node:internal\//;
