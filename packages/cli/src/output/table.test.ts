import { describe, expect, it } from "vitest";
import { type Column, displayWidth, renderFields, renderTable } from "./table.ts";

interface Row {
  readonly id: string;
  readonly count: number;
  readonly text: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: "ID", value: (row) => row.id },
  { title: "COUNT", value: (row) => String(row.count), align: "right" },
  { title: "TEXT", value: (row) => row.text, flexible: true },
  { title: "EXTRA", value: () => "extra column", optional: true },
];

const LONG = "a text that is much longer than any terminal has room for";

describe("renderTable", () => {
  it("aligns columns and cuts nothing without a width", () => {
    expect(
      renderTable(
        [
          { id: "a", count: 7, text: "short" },
          { id: "long-id", count: 1234, text: LONG },
        ],
        COLUMNS,
      ),
    ).toEqual([
      `ID       COUNT  TEXT${" ".repeat(LONG.length - 4)}  EXTRA`,
      `a            7  short${" ".repeat(LONG.length - 5)}  extra column`,
      `long-id   1234  ${LONG}  extra column`,
    ]);
  });

  it.each([28, 30, 40, 60, 80, 120])("fits into %i columns", (width) => {
    const lines = renderTable([{ id: "some-identifier", count: 12, text: LONG }], COLUMNS, width);
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
  });

  it.each([40, 10])(
    "drops optional columns and cuts flexible text, but never ids, at %i columns",
    (width) => {
      const [head, line] = renderTable([{ id: "some-identifier", count: 12, text: LONG }], COLUMNS, width);
      expect(head).not.toContain("EXTRA");
      expect(line).toMatch(/^some-identifier +12 +a t.*…$/);
    },
  );

  describe("with columns that can be headings", () => {
    const columns: readonly Column<Row>[] = [
      { title: "TASK", value: (row) => row.text },
      { title: "RUN", value: (row) => row.id, heading: true },
      { title: "ARGUMENTS", value: () => "path=/in/orders.csv", flexible: 16 },
      { title: "COUNT", value: (row) => String(row.count), optional: true },
    ];
    const rows = ["run-one", "run-one", "run-two", "run-one"].map((id, count) => ({
      id,
      count,
      text: "load",
    }));

    it("keeps them in the rows if the required columns fit", () => {
      expect(renderTable(rows.slice(0, 1), columns, 34)).toEqual([
        "TASK  RUN      ARGUMENTS",
        "load  run-one  path=/in/orders.csv",
      ]);
    });

    it("shows them above their rows otherwise, uncut, and drops optional columns before it cuts", () => {
      expect(renderTable(rows, columns, 24)).toEqual([
        "  TASK  ARGUMENTS",
        "run-one",
        "  load  path=/in/orders…",
        "  load  path=/in/orders…",
        "run-two",
        "  load  path=/in/orders…",
        "run-one",
        "  load  path=/in/orders…",
      ]);
    });
  });

  it("counts wide characters as two cells", () => {
    const lines = renderTable(
      [
        { id: "日本", count: 1, text: "x" },
        { id: "abcd", count: 1, text: "x" },
      ],
      COLUMNS.slice(0, 2),
    );
    expect(lines).toEqual(["ID    COUNT", "日本      1", "abcd      1"]);
  });

  it("removes control sequences from cells", () => {
    const [, line] = renderTable([{ id: "a\u001b[2Jb\nc\u0007", count: 1, text: "" }], COLUMNS.slice(0, 1));
    expect(line).toBe("ab c");
  });

  it("paints the cell, not its padding", () => {
    const painted: Column<Row>[] = [{ ...COLUMNS[0]!, paint: (_, cell) => `<${cell}>` }, COLUMNS[1]!];
    expect(renderTable([{ id: "a", count: 1, text: "" }], painted)[1]).toBe("<a>       1");
  });
});

describe("renderFields", () => {
  it("leaves out empty fields and indents further lines", () => {
    const fields = [
      ["name", "x"],
      ["gone", null],
      ["a longer name", "one\ntwo"],
    ] as const;
    expect(renderFields(fields, (name) => name)).toEqual([
      "name           x",
      "a longer name  one",
      "               two",
    ]);
  });
});
