/**
 * The one function through which user code is called. Its name marks the border in stack traces: whatever stands
 * below it is ours, whether the file is the SDK's source, its published form, or a bundle that mixes it with the
 * author's code. (A bundler may add a number to the name, so it is searched for as a part.)
 */
export async function tradewindCallsUserCode<Args extends unknown[], R>(
  userCode: (...args: Args) => R,
  ...args: Args
): Promise<Awaited<R>> {
  return await userCode(...args);
}

/** The part of a stack that is the author's, without the frames of Node itself. */
export function authorsPart(stack: string): string {
  const lines = stack.split("\n");
  const border = lines.findIndex((line) => FRAME.test(line) && line.includes(tradewindCallsUserCode.name));
  return (border === -1 ? lines : lines.slice(0, border)).filter((line) => !NODE_FRAME.test(line)).join("\n");
}

/**
 * The same for an error that the SDK itself threw: it says what the author did wrong, and only the author's frames say
 * where. What called the attempt is the engine's: of an output that is refused after the author's code has returned,
 * no frame is left.
 */
export function withoutOurs(stack: string): string {
  const here = ownPlace();
  if (here === null) return authorsPart(stack);
  const lines = authorsPart(stack).split("\n");
  const isOurs = (line: string) => FRAME.test(line) && line.includes(here);
  const entry = lines.findIndex((line) => isOurs(line) && line.includes(ENTRY));
  return (entry === -1 ? lines : lines.slice(0, entry)).filter((line) => !isOurs(line)).join("\n");
}

/** Where this code is, as a stack shows it: the folder of the package, or the one file that it was bundled into. */
function ownPlace(): string | null {
  const place = / \((.+):\d+:\d+\)$/m.exec(new Error("where am I").stack ?? "")?.[1];
  return place?.replace(/runtime\/user-code\.\w+$/, "") ?? null;
}

/** The function of attempt.ts that the engine calls. */
const ENTRY = "runAttempt";
const FRAME = /^\s+at /;
const NODE_FRAME = /^\s+at .*node:internal\//;
