/** Options of infinite queries over lists with `limit` and `offset`. */
export function offsetPages<Page>(
  rowsOf: (page: Page) => readonly unknown[],
  totalOf: (page: Page) => number | null,
) {
  return {
    pageParamName: "offset",
    initialPageParam: 0,
    getNextPageParam: (last: Page, pages: readonly Page[]) => {
      const shown = pages.reduce((sum, page) => sum + rowsOf(page).length, 0);
      const total = totalOf(last);
      return rowsOf(last).length > 0 && (total === null || shown < total) ? shown : undefined;
    },
  };
}
