/** The order of a list. It always ends with a unique key, so that pages neither repeat nor skip a row. */

export interface OrderTerm {
  readonly expression: string;
  readonly descending: boolean;
  /** Part of the unique key, hence never null. With NULLS FIRST, PostgreSQL would not use the index of such a column. */
  readonly isKey: boolean;
}

export interface Ordered {
  /** The SQL expression of each `orderBy` key. */
  readonly order: Readonly<Record<string, string>>;
  /** Columns, separated by ", ": unique together, never null. */
  readonly tiebreak: string;
  readonly page: { readonly orderBy?: readonly string[] };
}

export function orderTerms({ order, page, tiebreak }: Ordered): OrderTerm[] {
  const keys = tiebreak.split(", ");
  const asked = (page.orderBy ?? []).flatMap((key) => {
    const name = key.replace(/^-/, "");
    const expression = Object.hasOwn(order, name) ? order[name]! : null;
    return expression === null ? [] : [{ expression, descending: key.startsWith("-") }];
  });
  const terms = new Map<string, OrderTerm>();
  for (const term of [...asked, ...keys.map((expression) => ({ expression, descending: false }))]) {
    if (terms.has(term.expression)) continue;
    terms.set(term.expression, { ...term, isKey: keys.includes(term.expression) });
  }
  return [...terms.values()];
}

/** Nulls come first ascending and last descending, so that each order is the exact reverse of the other. */
export function orderSql(terms: readonly OrderTerm[]): string {
  return terms
    .map(({ descending, expression, isKey }) => {
      const direction = descending ? "DESC" : "ASC";
      const nulls = isKey ? "" : descending ? " NULLS LAST" : " NULLS FIRST";
      return `${expression} ${direction}${nulls}`;
    })
    .join(", ");
}

export function reversed(terms: readonly OrderTerm[]): OrderTerm[] {
  return terms.map((term) => ({ ...term, descending: !term.descending }));
}
