import pg from "pg";

const INT8 = 20;
const INT8_ARRAY = 1016;

const int8Array = (pg.types.getTypeParser as (oid: number, format: "text") => unknown)(
  INT8_ARRAY,
  "text",
) as (text: string) => (string | null)[];

/**
 * How values arrive: int8 as number (ids and counts stay far below 2^53; xid8 is another type and stays text),
 * timestamptz as Date, json and jsonb parsed. Set per client: the driver's global table belongs to the host program.
 */
export const wireTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") => {
    if (format !== "binary" && oid === INT8) return Number;
    if (format !== "binary" && oid === INT8_ARRAY) return parseInt8Array;
    return pg.types.getTypeParser(oid, format as "text");
  }) as pg.CustomTypesConfig["getTypeParser"],
};

export type ParseText = (text: string) => unknown;

export function textParser(oid: number): ParseText {
  return (wireTypes.getTypeParser as (oid: number, format: "text") => ParseText)(oid, "text");
}

function parseInt8Array(text: string): (number | null)[] {
  return int8Array(text).map((item) => (item === null ? null : Number(item)));
}
