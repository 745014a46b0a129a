/** What every scenario answers: figures with, where one was promised, their bar. */

export interface Figure {
  readonly scenario: string;
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly bar?: Bar;
  /** How the value came about: percentiles, CPU, counts. */
  readonly note?: string;
}

export type Bar = { readonly atMost: number } | { readonly atLeast: number };

export function passes({ value, bar }: Figure): boolean | null {
  if (bar === undefined) return null;
  return "atMost" in bar ? value <= bar.atMost : value >= bar.atLeast;
}
