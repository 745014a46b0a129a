/** Exit codes of a command. Part of the public contract: a code never changes its meaning. */
export const EXIT = {
  ok: 0,
  /** The operation, the run or the check failed. */
  failed: 1,
  usage: 2,
  notFound: 3,
  auth: 4,
  conflict: 5,
  /** The server or the network failed. */
  server: 6,
  waitTimeout: 124,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
