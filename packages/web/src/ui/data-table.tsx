/**
 * A table of rows: sorted by the server, rows drawn only while they are visible, keyboard and selection. The state of sorting and
 * filters belongs to the page's URL.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { cx } from "./class-names.ts";

export interface Column<Row> {
  readonly id: string;
  readonly header: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** The name by which the API sorts. */
  readonly sort?: string;
  readonly numeric?: boolean;
  /** As a CSS width, e.g. "120px"; the others share what is left. */
  readonly width?: string;
  /** Hidden below this width of the window. */
  readonly from?: keyof typeof FROM;
}

interface Selection<Row> {
  readonly isSelected: (row: Row) => boolean;
  readonly onToggle: (rows: readonly Row[], selected: boolean) => void;
}

export interface DataTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string | number;
  /** As the API expects it: "-started_at". */
  readonly orderBy?: string | undefined;
  readonly onOrderBy?: (orderBy: string) => void;
  readonly onOpen?: (row: Row) => void;
  readonly isOpen?: (row: Row) => boolean;
  readonly selection?: Selection<Row>;
  readonly rowClass?: (row: Row) => string | false | undefined;
  /** Height of a row in pixels. */
  readonly rowHeight?: number;
  /** Widths are those of the columns, with any content. */
  readonly fixed?: boolean;
  /** Below the last row: "load more", for example. */
  readonly footer?: ReactNode;
}

const FROM = {
  sm: "max-sm:hidden",
  md: "max-md:hidden",
  lg: "max-lg:hidden",
  xl: "max-xl:hidden",
  "2xl": "max-[1400px]:hidden",
} as const;

export function DataTable<Row>({
  label,
  columns,
  rows,
  rowKey,
  orderBy,
  onOrderBy,
  onOpen,
  isOpen,
  selection,
  rowClass,
  rowHeight = 32,
  fixed = false,
  footer,
}: DataTableProps<Row>) {
  const scroller = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 16,
    getItemKey: (index) => rowKey(rows[index]!),
  });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const all = selection !== undefined && rows.length > 0 && rows.every(selection.isSelected);
  return (
    <section
      ref={scroller}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reachable by keyboard
      tabIndex={0}
      aria-label={label}
      className="h-full overflow-auto outline-none"
    >
      <table
        className={cx("w-full border-separate border-spacing-0", fixed && "table-fixed")}
        aria-rowcount={rows.length}
      >
        <thead>
          <tr>
            {selection && (
              <th className={HEAD} style={{ width: "34px" }}>
                <input
                  type="checkbox"
                  aria-label="Select all rows"
                  checked={all}
                  onChange={() => selection.onToggle(rows, !all)}
                />
              </th>
            )}
            {columns.map((column) => (
              <th
                key={column.id}
                scope="col"
                style={column.width === undefined ? undefined : { width: column.width }}
                className={cx(HEAD, column.numeric && "text-right", column.from && FROM[column.from])}
                aria-sort={sortOf(column, orderBy)}
              >
                {column.sort !== undefined && onOrderBy ? (
                  <SortButton name={column.sort} orderBy={orderBy} onOrderBy={onOrderBy}>
                    {column.header}
                  </SortButton>
                ) : (
                  column.header
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 && <tr aria-hidden style={{ height: above }} />}
          {items.map(({ index, key }) => {
            const row = rows[index]!;
            return (
              <tr
                key={key}
                aria-rowindex={index + 1}
                aria-selected={isOpen ? isOpen(row) : undefined}
                onClick={(event) => {
                  if (onOpen && !(event.target as Element).closest("a, button, input, label")) onOpen(row);
                }}
                className={cx(
                  "group hover:bg-hover",
                  onOpen && "cursor-default",
                  isOpen?.(row) && "bg-accent-soft",
                  rowClass?.(row),
                )}
              >
                {selection && (
                  <td className={CELL}>
                    <input
                      type="checkbox"
                      aria-label="Select this row"
                      checked={selection.isSelected(row)}
                      onChange={(event) => selection.onToggle([row], event.target.checked)}
                    />
                  </td>
                )}
                {columns.map((column) => (
                  <td
                    key={column.id}
                    style={{ height: rowHeight }}
                    className={cx(
                      CELL,
                      column.numeric && "text-right tabular-nums",
                      column.from && FROM[column.from],
                    )}
                  >
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
          {below > 0 && <tr aria-hidden style={{ height: below }} />}
        </tbody>
      </table>
      {footer !== undefined && <div className="px-2.5 py-2">{footer}</div>}
    </section>
  );
}

const HEAD =
  "sticky top-0 z-10 h-7 border-b border-line bg-bg px-2.5 text-left text-sm font-medium whitespace-nowrap text-muted first:pl-4 last:pr-4";
const CELL = "border-b border-line px-2.5 first:pl-4 last:pr-4";

function sortOf<Row>({ sort }: Column<Row>, orderBy: string | undefined) {
  if (sort === undefined || orderBy === undefined) return undefined;
  if (orderBy === sort) return "ascending";
  return orderBy === `-${sort}` ? "descending" : undefined;
}

function SortButton({
  name,
  orderBy,
  onOrderBy,
  children,
}: {
  readonly name: string;
  readonly orderBy: string | undefined;
  readonly onOrderBy: (orderBy: string) => void;
  readonly children: ReactNode;
}) {
  const Icon = orderBy === name ? ArrowUp : orderBy === `-${name}` ? ArrowDown : null;
  return (
    <button
      type="button"
      className="inline-flex items-center gap-1 hover:text-text"
      onClick={() => onOrderBy(orderBy === `-${name}` ? name : `-${name}`)}
    >
      {children}
      {Icon && <Icon aria-hidden className="size-3" />}
    </button>
  );
}
