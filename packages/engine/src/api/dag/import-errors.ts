import { z } from "zod";
import {
  findImportError,
  IMPORT_ERROR_ORDER,
  type ImportErrorRow,
  listImportErrors,
} from "../../store/list/import-errors.ts";
import type { Resource } from "../server/context.ts";
import {
  BUNDLE_NAME,
  bundleName,
  date,
  int,
  isOtherBundle,
  iso,
  orderBy,
  pageQuery,
  text,
} from "../server/fields.ts";
import { notFound } from "../server/problem.ts";
import { pageOf } from "./dags.ts";

const errorDocument = z
  .object({
    import_error_id: z.number(),
    timestamp: date,
    filename: z.string(),
    bundle_name: z.string().nullable(),
    stack_trace: z.string(),
  })
  .meta({ id: "ImportErrorResponse" });

export const importErrors: Resource = (app, { database }) => {
  app.get(
    "/api/v2/importErrors",
    {
      schema: {
        querystring: z.strictObject({
          ...pageQuery,
          filename: text.optional(),
          filename_pattern: text.optional(),
          filename_prefix_pattern: text.optional(),
          bundle_name: bundleName,
          order_by: orderBy(IMPORT_ERROR_ORDER, "id"),
        }),
        response: { 200: z.object({ import_errors: z.array(errorDocument), total_entries: z.number() }) },
        tags: ["Import Error"],
      },
    },
    async ({ query }) => {
      const filter = {
        file: query.filename,
        filePattern: query.filename_pattern,
        filePrefix: query.filename_prefix_pattern,
        nothing: isOtherBundle(query.bundle_name),
      };
      const { rows, total } = await listImportErrors(database, filter, pageOf(query));
      return { import_errors: rows.map(show), total_entries: total };
    },
  );

  app.get(
    "/api/v2/importErrors/:import_error_id",
    {
      schema: {
        params: z.object({ import_error_id: int(0, Number.MAX_SAFE_INTEGER) }),
        response: { 200: errorDocument },
        tags: ["Import Error"],
      },
    },
    async ({ params }) => {
      const row = await findImportError(database, params.import_error_id);
      if (row === undefined) throw notFound(`Import error ${params.import_error_id} does not exist`);
      return show(row);
    },
  );
};

function show(row: ImportErrorRow): z.output<typeof errorDocument> {
  return {
    import_error_id: row.id,
    timestamp: iso(row.created_at),
    filename: row.file,
    bundle_name: BUNDLE_NAME,
    stack_trace: row.message,
  };
}
