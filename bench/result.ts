/** The result of every scenario: figures, with their bar if there is one. */

export interface Figure {
  readonly scenario: string;
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly bar?: Bar;
  /** Details of the value: percentiles, CPU, counts. */
  readonly note?: string;
}

export type Bar = { readonly atMost: number } | { readonly atLeast: number };

export function passes({ value, bar }: Figure): boolean | null {
  if (bar === undefined) return null;
  return "atMost" in bar ? value <= bar.atMost : value >= bar.atLeast;
}
