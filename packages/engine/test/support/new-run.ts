/** A run without an id, a date or params, as the command line triggers it. */
export const NEW_RUN = {
  runId: null,
  logicalDate: null,
  interval: null,
  runAfter: null,
  conf: {},
  note: null,
  triggeredBy: "cli",
  triggeringUser: null,
} as const;
