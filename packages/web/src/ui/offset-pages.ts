import { keepPreviousData } from "@tanstack/react-query";

/** Options of infinite queries over lists with `limit` and `offset`. Other filters keep the rows until the new ones are there. */
export function offsetPages<Page>(
  rowsOf: (page: Page) => readonly unknown[],
  totalOf: (page: Page) => number | null,
) {
  return {
    pageParamName: "offset",
    initialPageParam: 0,
    placeholderData: keepPreviousData,
    getNextPageParam: (last: Page, pages: readonly Page[]) => {
      const shown = pages.reduce((sum, page) => sum + rowsOf(page).length, 0);
      const total = totalOf(last);
      return rowsOf(last).length > 0 && (total === null || shown < total) ? shown : undefined;
    },
  };
}
