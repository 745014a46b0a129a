/** `/dagVersions` and `/dagSources`: the versions of a DAG and their code. */
import type { FastifyReply } from "fastify";
import { z } from "zod";
import {
  DAG_VERSION_ORDER,
  findDagVersion,
  findSource,
  listDagVersions,
} from "../../store/list/dag-versions.ts";
import type { Resource } from "../server/context.ts";
import { showVersion, versionDocument } from "../server/documents.ts";
import { bundleName, id, int, isOtherBundle, named, orderBy, pageQuery, text } from "../server/fields.ts";
import { notFound } from "../server/problem.ts";
import { pageOf, requireDagExists } from "./dags.ts";

const listQuery = z.strictObject({
  ...pageQuery,
  version_number: int(0).optional(),
  bundle_name: bundleName,
  bundle_version: text.optional(),
  order_by: orderBy(DAG_VERSION_ORDER, "id"),
});

export const dagVersions: Resource = (app, { database }) => {
  app.get(
    "/api/v2/dags/:dag_id/dagVersions",
    {
      schema: {
        params: z.object({ dag_id: id }),
        querystring: listQuery,
        response: { 200: z.object({ dag_versions: z.array(versionDocument), total_entries: z.number() }) },
        tags: ["DagVersion"],
      },
    },
    async ({ params, query }) => {
      if (params.dag_id !== "~") await requireDagExists(database, params.dag_id);
      const filter = {
        dagId: named(params.dag_id),
        number: query.version_number,
        bundleHash: query.bundle_version,
        nothing: isOtherBundle(query.bundle_name),
      };
      const { rows, total } = await listDagVersions(database, filter, pageOf(query));
      return { dag_versions: rows.map(showVersion), total_entries: total };
    },
  );

  app.get(
    "/api/v2/dags/:dag_id/dagVersions/:version_number",
    {
      schema: {
        params: z.object({ dag_id: id, version_number: int(0) }),
        response: { 200: versionDocument },
        tags: ["DagVersion"],
      },
    },
    async ({ params }) => {
      const row = await findDagVersion(database, params.dag_id, params.version_number);
      if (row === undefined) throw noVersion(params.dag_id, params.version_number);
      return showVersion(row);
    },
  );

  app.get(
    "/api/v2/dagSources/:dag_id",
    {
      schema: {
        params: z.object({ dag_id: id }),
        querystring: z.strictObject({ version_number: int(0).optional() }),
        response: { 200: sourceDocument },
        tags: ["DagSource"],
      },
    },
    async (request, reply) => {
      const { dag_id } = request.params;
      const row = await findSource(database, dag_id, request.query.version_number);
      if (row === undefined) throw noVersion(dag_id, request.query.version_number);
      if (/^\s*text\/plain\b/.test(request.headers.accept ?? "")) {
        return (reply as unknown as FastifyReply)
          .type("text/plain; charset=utf-8")
          .serializer(String)
          .send(row.source) as never;
      }
      return { content: row.source, dag_id, version_number: row.number, dag_display_name: dag_id };
    },
  );
};

const sourceDocument = z.object({
  content: z.string().nullable(),
  dag_id: z.string(),
  version_number: z.number().nullable(),
  dag_display_name: z.string(),
});

function noVersion(dagId: string, number: number | undefined) {
  return notFound(
    number === undefined ? `DAG "${dagId}" has no version` : `DAG "${dagId}" has no version ${number}`,
  );
}
