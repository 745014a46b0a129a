import { SIGNAL_KIND } from "../../model/trigger/engine-kinds.ts";

/**
 * SQL: the signal that the trigger of this alias waits for, as `namespace/key`; null for other kinds. Also null if its
 * arguments contain an escape that PostgreSQL cannot convert to text, for example in a value that it is compared with:
 * `->>` would fail on the whole object.
 */
export const waitedSignal = (trigger: string) =>
  `CASE WHEN ${trigger}.kind = '${SIGNAL_KIND}' AND ${trigger}.args::text !~* '\\\\u(0000|d[89a-f])'
     THEN (${trigger}.args->>'namespace') || '/' || (${trigger}.args->>'key') END`;
