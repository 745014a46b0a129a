/** `/dagVersions/diff`: the changes between two versions of a DAG; by default between the previous and the current one. */
import { z } from "zod";
import { diffVersions, isSameShape, unifiedDiff } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import { findWholeVersion, type WholeVersion } from "../../store/list/dag-versions.ts";
import type { Resource } from "../server/context.ts";
import { showVersion, versionDocument } from "../server/documents.ts";
import { id, int } from "../server/fields.ts";
import { notFound } from "../server/problem.ts";
import { requireDagExists } from "./dags.ts";

const fieldChange = z.object({ field: z.string(), from: z.any(), to: z.any() });
const edge = z.object({ from: z.string(), to: z.string() });
const parts = z.object({
  added: z.array(z.string()),
  removed: z.array(z.string()),
  changed: z.array(z.object({ id: z.string(), fields: z.array(fieldChange) })),
});

const diffDocument = z
  .object({
    dag_id: z.string(),
    from: versionDocument,
    to: versionDocument,
    /** Tasks, edges and options are equal: only code differs. */
    is_same_shape: z.boolean(),
    /** Also false if the file is equal but imported code has changed. */
    is_same_code: z.boolean(),
    options: z.array(fieldChange),
    tasks: parts,
    edges: z.object({ added: z.array(edge), removed: z.array(edge) }),
    groups: parts,
    maps: parts,
    /** Unified diff of the DAG's file; empty if it is unchanged. */
    source_diff: z.string(),
  })
  .meta({ id: "DagVersionDiff" });

export const dagVersionDiff: Resource = (app, { database }) => {
  app.get(
    "/api/v2/dags/:dag_id/dagVersions/diff",
    {
      schema: {
        params: z.object({ dag_id: id }),
        querystring: z.strictObject({ from: int(0).optional(), to: int(0).optional() }),
        response: { 200: diffDocument },
        tags: ["DagVersion"],
      },
    },
    async ({ params: { dag_id }, query }) => {
      await requireDagExists(database, dag_id);
      const { from, to } = await bothVersions(database, dag_id, query);
      const shape = diffVersions(from.manifest, to.manifest);
      const named = ({ number, source }: WholeVersion) => ({
        name: `${dag_id}, version ${number}`,
        text: source,
      });
      return {
        dag_id,
        from: showVersion(from),
        to: showVersion(to),
        is_same_shape: isSameShape(shape),
        is_same_code: from.bundle_hash === to.bundle_hash,
        options: [...shape.options],
        tasks: written(shape.tasks),
        edges: { added: [...shape.edges.added], removed: [...shape.edges.removed] },
        groups: written(shape.groups),
        maps: written(shape.maps),
        source_diff: unifiedDiff(named(from), named(to)),
      };
    },
  );
};

async function bothVersions(
  db: Connection,
  dagId: string,
  asked: { readonly from?: number | undefined; readonly to?: number | undefined },
): Promise<{ from: WholeVersion; to: WholeVersion }> {
  const to = await findWholeVersion(db, dagId, asked.to === undefined ? "current" : { number: asked.to });
  if (!to) throw notFound(missing(dagId, asked.to));
  const from = await findWholeVersion(
    db,
    dagId,
    asked.from === undefined ? { before: to.number } : { number: asked.from },
  );
  if (from) return { from, to };
  if (asked.from !== undefined) throw notFound(missing(dagId, asked.from));
  throw notFound(`DAG "${dagId}" has no version before ${to.number} to compare with`);
}

function missing(dagId: string, number: number | undefined): string {
  return number === undefined
    ? `DAG "${dagId}" has no version`
    : `DAG "${dagId}" has no version ${number}: it never existed, or it was deleted`;
}

type Parts = ReturnType<typeof diffVersions>["tasks"];

function written({ added, removed, changed }: Parts): z.input<typeof parts> {
  return {
    added: [...added],
    removed: [...removed],
    changed: changed.map(({ id: name, fields }) => ({ id: name, fields: [...fields] })),
  };
}
