/**
 * Airflow's bulk requests: `PATCH` on a collection creates, changes and deletes many objects. Unlike in Airflow, it is one
 * transaction: either everything is done, or nothing, and the response names every invalid entry. With `dry_run` the
 * transaction is rolled back after the work, so the response is exact, including compared secrets.
 */
import { z } from "zod";
import type { Connection } from "../../store/database/database.ts";
import type { ApiApp, ApiOptions } from "./context.ts";
import { flag } from "./fields.ts";
import { change } from "./idempotent.ts";
import { type FieldError, Problem } from "./problem.ts";

/** The values of one object by API field; undefined: not given. */
export type BulkValues = Readonly<Record<string, unknown>>;

/** A collection that accepts bulk requests. */
export interface BulkTarget {
  /** `pools`: the last part of its path, and the first part of its names in the audit log. */
  readonly collection: string;
  readonly tag: string;
  /** The field with the name of an object. */
  readonly key: string;
  readonly create: z.ZodObject;
  /** All fields except the key are optional. */
  readonly update: z.ZodObject;
  /** All fields except the key in their stored form: numbers, texts, null. */
  values(entity: BulkValues): BulkValues;
  /** Returns false if the name exists. */
  add(tx: Connection, key: string, values: BulkValues): Promise<boolean>;
  /** The stored values, locked until the end of the transaction. */
  lock(tx: Connection, key: string): Promise<BulkValues | undefined>;
  /** @param stored The values read by `lock`. */
  alter(tx: Connection, key: string, change: { stored: BulkValues; changes: BulkValues }): Promise<void>;
  /** The reason why it cannot be deleted, or null. */
  remove(tx: Connection, key: string): Promise<string | null>;
  /** Called after the commit. */
  onChanged?(key: string): void;
}

const MAX_ENTITIES = 10_000;
const BODY_LIMIT = 16 * 1024 * 1024;
const query = z.strictObject({
  dry_run: flag.optional().describe("Not in Airflow: only report what would be done."),
});
const done = z.object({ success: z.array(z.string()), errors: z.array(z.object({})) }).nullable();
const bulkDocument = z
  .object({
    create: done,
    update: done,
    delete: done,
    changes: z
      .array(
        z.object({
          key: z.string(),
          change: z.enum(["created", "changed", "unchanged", "deleted", "skipped"]),
          fields: z.array(z.string()),
        }),
      )
      .describe("Not in Airflow: the result of each entry, with the changed fields."),
  })
  .meta({ id: "BulkResponse" });

interface EntryChange {
  readonly key: string;
  readonly change: "created" | "changed" | "unchanged" | "deleted" | "skipped";
  readonly fields: string[];
}

type Step =
  | { readonly action: "create"; readonly onExistence: "fail" | "skip" | "overwrite" }
  | { readonly action: "update" | "delete"; readonly onAbsence: "fail" | "skip" };

interface Entry {
  readonly step: Step;
  readonly key: string;
  readonly values: BulkValues;
  readonly loc: readonly (string | number)[];
}

/** Carries the result of a dry run out of its rolled-back transaction. */
class DryRun extends Error {
  readonly changes: EntryChange[];

  constructor(changes: EntryChange[]) {
    super("dry run");
    this.changes = changes;
  }
}

export function addBulkRoute(app: ApiApp, options: ApiOptions, target: BulkTarget): void {
  const body = bodyOf(target);
  app.patch(
    `/api/v2/${target.collection}`,
    {
      bodyLimit: BODY_LIMIT,
      schema: { querystring: query, body, response: { 200: bulkDocument }, tags: [target.tag] },
    },
    async (request) => {
      const { actions } = request.body;
      const entries = entriesOf(target, actions);
      const changes = await change(options, request, async (tx) => {
        const result = await apply(tx, target, entries);
        if (request.query.dry_run) throw new DryRun(result);
        return { result, ...deedOf(target, result) };
      }).catch((error: unknown) => {
        if (error instanceof DryRun) return error.changes;
        throw error;
      });
      if (!request.query.dry_run)
        for (const each of changes) if (isChange(each)) target.onChanged?.(each.key);
      const of = (action: string) => {
        if (!actions.some((each) => each.action === action)) return null;
        const keys = entries.filter(({ step }) => step.action === action).map(({ key }) => key);
        return { success: keys, errors: [] };
      };
      return { create: of("create"), update: of("update"), delete: of("delete"), changes };
    },
  );
}

function bodyOf({ create, key, update }: BulkTarget) {
  const onAbsence = z.enum(["fail", "skip"]).default("fail");
  const list = <T extends z.ZodType>(entity: T) => z.array(entity).max(MAX_ENTITIES);
  return z.strictObject({
    actions: z
      .array(
        z.discriminatedUnion("action", [
          z.strictObject({
            action: z.literal("create"),
            entities: list(create),
            action_on_existence: z.enum(["fail", "skip", "overwrite"]).default("fail"),
          }),
          z.strictObject({
            action: z.literal("update"),
            entities: list(update),
            update_mask: z.array(z.string()).nullish(),
            action_on_non_existence: onAbsence,
          }),
          z.strictObject({
            action: z.literal("delete"),
            entities: list(
              z
                .union([z.string(), z.looseObject({ [key]: z.string() })])
                .transform((given) => (typeof given === "string" ? { [key]: given } : given)),
            ),
            action_on_non_existence: onAbsence,
          }),
        ]),
      )
      .max(100),
  });
}

/** Sorted by name, so that concurrent requests lock rows in the same order. */
function entriesOf(
  target: BulkTarget,
  actions: z.output<ReturnType<typeof bodyOf>>["actions"],
): readonly Entry[] {
  const entries = actions.flatMap((action, at) => {
    const step: Step =
      action.action === "create"
        ? { action: "create", onExistence: action.action_on_existence }
        : { action: action.action, onAbsence: action.action_on_non_existence };
    const mask = action.action === "update" ? action.update_mask : null;
    return action.entities.map((entity: BulkValues, index): Entry => {
      const key = entity[target.key] as string;
      const values = action.action === "delete" ? {} : target.values(entity);
      const kept = Object.entries(values).filter(([field]) => mask?.includes(field) ?? true);
      return { step, key, values: Object.fromEntries(kept), loc: ["body", "actions", at, "entities", index] };
    });
  });
  const seen = new Set<string>();
  const twice = entries.filter(({ key }) => seen.size === seen.add(key).size);
  if (twice.length > 0) throw refusal(twice.map((entry) => problem(entry, `"${entry.key}" occurs twice`)));
  return entries.toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

async function apply(tx: Connection, target: BulkTarget, entries: readonly Entry[]): Promise<EntryChange[]> {
  const changes: EntryChange[] = [];
  const problems: FieldError[] = [];
  for (const entry of entries) {
    const result = await applyOne(tx, target, entry);
    if (typeof result === "string") problems.push(problem(entry, result));
    else changes.push(result);
  }
  if (problems.length > 0) throw refusal(problems);
  return changes;
}

/** The result, or the reason why it failed. */
async function applyOne(tx: Connection, target: BulkTarget, entry: Entry): Promise<EntryChange | string> {
  const { key, step, values } = entry;
  if (step.action === "create") {
    if (await target.add(tx, key, values))
      return { key, change: "created", fields: Object.keys(values).filter((field) => values[field] != null) };
    if (step.onExistence === "skip") return { key, change: "skipped", fields: [] };
    if (step.onExistence === "fail") return `"${key}" already exists`;
  }
  const stored = await target.lock(tx, key);
  if (stored === undefined)
    return step.action !== "create" && step.onAbsence === "skip"
      ? { key, change: "skipped", fields: [] }
      : `"${key}" does not exist`;
  if (step.action === "delete") {
    const obstacle = await target.remove(tx, key);
    return obstacle ?? { key, change: "deleted", fields: [] };
  }
  const fields = Object.keys(values).filter(
    (field) => values[field] !== undefined && values[field] !== stored[field],
  );
  if (fields.length === 0) return { key, change: "unchanged", fields };
  const given = Object.fromEntries(fields.map((field) => [field, values[field]]));
  await target.alter(tx, key, { stored, changes: given });
  return { key, change: "changed", fields };
}

function isChange({ change: what }: EntryChange): boolean {
  return what !== "unchanged" && what !== "skipped";
}

/** One audit record for all entries, with names but no values. */
function deedOf({ collection }: BulkTarget, changes: readonly EntryChange[]) {
  const changed = changes.filter(isChange);
  if (changed.length === 0) return {};
  const details: Record<string, string[]> = {};
  for (const { change: what, key } of changed) details[what] = [...(details[what] ?? []), key];
  const about = changed.map(({ key }) => `${collection}/${key}`);
  return { deed: { action: `bulk_${collection}`, about, details } };
}

function problem({ loc }: Entry, msg: string): FieldError {
  return { loc, msg, type: "value_error" };
}

function refusal(problems: readonly FieldError[]): Problem {
  return new Problem(422, "VALIDATION", problems);
}
