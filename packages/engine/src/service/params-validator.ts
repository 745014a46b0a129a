/**
 * Validates a run's conf against the JSON Schema of its DAG version, before the run exists. The task's process validates
 * it again with the author's own validator; this check reports errors to the caller at once, by field.
 */
import { unknownConfKeys } from "@tradewind/sdk/conf-keys";
import type { Json } from "@tradewind/sdk/manifest";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { oneOf } from "./value-list.ts";

export interface ParamsProblem {
  readonly path: readonly string[];
  readonly problem: string;
  readonly keyword: string;
}

const CACHE_SIZE = 500;

export interface CheckedVersion {
  /** Of the version, or of a form in it: a schema with this id never changes. */
  readonly id: number | string;
  readonly schema: Json | null;
}

export class ParamsValidator {
  /** By id. Null: a schema that Ajv cannot use, left to the task's own check. */
  readonly #compiled = new Map<number | string, ValidateFunction | null>();

  /** The problems by field; empty if the version has no schema. */
  problems(version: CheckedVersion, conf: Json): readonly ParamsProblem[] {
    if (version.schema === null) return [];
    const unknown = unknownConfKeys(version.schema, conf);
    const validate = this.#validator(version.id, version.schema);
    const errors = validate === null || validate(conf) ? [] : (validate.errors ?? []);
    return [
      ...unknown.map(({ key, problem }) => ({ path: [key], problem, keyword: "additionalProperties" })),
      ...errors.filter((error) => unknown.length === 0 || !isAboutKeys(error)).map(problemOf),
    ];
  }

  #validator(id: number | string, schema: Json): ValidateFunction | null {
    const known = this.#compiled.get(id);
    if (known !== undefined) return known;
    if (this.#compiled.size >= CACHE_SIZE) this.#compiled.delete(this.#compiled.keys().next().value!);
    const compiled = compile(schema);
    this.#compiled.set(id, compiled);
    return compiled;
  }
}

function compile(schema: Json): ValidateFunction | null {
  try {
    return new Ajv2020({
      allErrors: true,
      strict: false,
      validateFormats: false,
      addUsedSchema: false,
    }).compile(schema as object);
  } catch {
    return null;
  }
}

function problemOf(error: {
  instancePath: string;
  keyword: string;
  message?: string;
  params: Record<string, unknown>;
}): ParamsProblem {
  const path = error.instancePath
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const named =
    error.params.missingProperty ?? error.params.additionalProperty ?? error.params.unevaluatedProperty;
  const place = [...path, ...(typeof named === "string" ? [named] : [])];
  return { path: place, problem: messageOf(error), keyword: error.keyword };
}

/** `unknownConfKeys` reports these with the nearest name. */
function isAboutKeys({ instancePath, keyword }: { instancePath: string; keyword: string }): boolean {
  return instancePath === "" && keyword === "additionalProperties";
}

/** Ajv's message does not list the allowed values. */
function messageOf({ message, params }: { message?: string; params: Record<string, unknown> }): string {
  if (Array.isArray(params.allowedValues)) return `must be ${oneOf(params.allowedValues)}`;
  if ("allowedValue" in params) return `must be ${oneOf([params.allowedValue])}`;
  return message ?? "is not valid";
}
