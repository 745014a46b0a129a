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

const FRAME = /^\s+at /;
const NODE_FRAME = /^\s+at .*node:internal\//;
