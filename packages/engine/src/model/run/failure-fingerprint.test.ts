import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { failureFingerprint } from "./failure-fingerprint.ts";

/** Real messages: each row has one cause and two occurrences of it. */
const SAME: readonly (readonly [fingerprint: string, first: string, second: string])[] = [
  [
    "NumericOverflow: refund_total exceeds NUMERIC(<number>) in <number> rows of mart.sales_daily",
    "NumericOverflow: refund_total exceeds NUMERIC(12,2) in 3 rows of mart.sales_daily",
    "NumericOverflow: refund_total exceeds NUMERIC(12,2) in 17,204 rows of mart.sales_daily",
  ],
  [
    "<number>: duplicate key value violates unique constraint <text> (Key (id)=(<number>) already exists.)",
    '23505: duplicate key value violates unique constraint "orders_pkey" (Key (id)=(8112) already exists.)',
    '23505: duplicate key value violates unique constraint "orders_pkey" (Key (id)=(9007) already exists.)',
  ],
  [
    "ENOENT: no such file or directory, open <text>",
    "ENOENT: no such file or directory, open '/data/in/2026-11-16/orders.csv'",
    "ENOENT: no such file or directory, open '/data/in/2026-11-17/orders.csv'",
  ],
  [
    "ECONNREFUSED: connect ECONNREFUSED <number>:<number>",
    "ECONNREFUSED: connect ECONNREFUSED 10.0.3.17:5432",
    "ECONNREFUSED: connect ECONNREFUSED 10.0.4.2:5432",
  ],
  [
    "HttpError: GET <url> failed: <number> Bad Gateway",
    "HttpError: GET https://api.example.com/v2/jobs/9f21c4?since=1763270000 failed: 502 Bad Gateway",
    "HttpError: GET https://api.example.com/v2/jobs/77ab01?since=1763356400 failed: 502 Bad Gateway",
  ],
  [
    "JobError: job <id> ended with state FAILED after <number> s",
    "JobError: job wh-9f21c4 ended with state FAILED after 421.7 s",
    "JobError: job wh-07aa31 ended with state FAILED after 17 s",
  ],
  [
    "Error: cannot divide (cause: division by zero)",
    "Error: cannot divide (cause: division by zero)",
    "Error: cannot divide  (cause: division by zero)\n",
  ],
  [
    "TASK_TIMEOUT: The try took longer than <number> m",
    "TASK_TIMEOUT: The try took longer than 10 m",
    "TASK_TIMEOUT: The try took longer than 15 m",
  ],
  [
    "TypeError: Cannot read properties of undefined (reading <text>)",
    "TypeError: Cannot read properties of undefined (reading 'rows')",
    "TypeError: Cannot read properties of undefined (reading 'length')",
  ],
  [
    "AssertionError: <number> of <number> rows have no price on <time>",
    "AssertionError: 14 of 1204118 rows have no price on 2026-11-16",
    "AssertionError: 3 of 1190002 rows have no price on 2026-11-17T02:00:00.000Z",
  ],
  [
    "ModuleNotFoundError: Cannot find module <text> imported from <path>",
    "ModuleNotFoundError: Cannot find module 'left-pad' imported from /srv/dags/lib/text.ts",
    "ModuleNotFoundError: Cannot find module 'left-pad' imported from /var/app/dags/lib/text.ts",
  ],
  [
    "Error: run <id> of tenant <address> was rejected at <time>",
    "Error: run 018f3a4e-7c1b-7d20-9b1e-2f6f0a5b9c3d of tenant ops@example.com was rejected at 02:30:52.870",
    "Error: run 018f3a4e-7c1b-7d20-9b1e-aaaaaaaaaaaa of tenant it.team@example.org was rejected at 14:01",
  ],
];

describe("failureFingerprint", () => {
  it.each(SAME)("%s", (fingerprint, first, second) => {
    expect(failureFingerprint(first)).toBe(fingerprint);
    expect(failureFingerprint(second)).toBe(fingerprint);
  });

  it("tells different causes apart", () => {
    const all = SAME.map(([, first]) => failureFingerprint(first));
    expect(new Set(all).size).toBe(SAME.length);
    for (const [a, b] of [
      ["TypeError: x is not a function", "TypeError: y is not a function"],
      [
        "NumericOverflow: refund_total exceeds NUMERIC(12,2)",
        "NumericOverflow: net_total exceeds NUMERIC(12,2)",
      ],
      ["Error: it's late", "Error: it's early, isn't it"],
      ["Error: cannot decode utf8", "Error: cannot decode base64"],
    ] as const)
      expect(failureFingerprint(a)).not.toBe(failureFingerprint(b));
  });

  it("has none without a reason", () => {
    expect(failureFingerprint(null)).toBeNull();
    expect(failureFingerprint(" \n")).toBeNull();
  });

  it("does not depend on numbers, nor change when it is taken again", () => {
    const words = fc.array(fc.constantFrom("rows", "of", "table:", "(found", "expected)", "at"), {
      minLength: 1,
    });
    fc.assert(
      fc.property(words, fc.nat(), fc.nat(), fc.nat(10), (parts, one, other, place) => {
        const at = place % (parts.length + 1);
        const of = (number: number) =>
          `Error: ${[...parts.slice(0, at), number, ...parts.slice(at)].join(" ")}`;
        const fingerprint = failureFingerprint(of(one));
        expect(failureFingerprint(of(other))).toBe(fingerprint);
        expect(failureFingerprint(fingerprint)).toBe(fingerprint);
      }),
    );
  });

  it("is short and ends for texts that no pattern matches to the end", () => {
    for (const part of ["a", "a1", "/a", '"', "'\\", "1.1", "a@a.", "-1a", "[", "\\"]) {
      const fingerprint = failureFingerprint(part.repeat(100_000));
      expect(fingerprint?.length).toBeLessThanOrEqual(1_000);
    }
  });
});
