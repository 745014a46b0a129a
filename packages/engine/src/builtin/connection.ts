/** Reads stored connections: their fields, the options in their `extra`, and their secrets. */
import { createHash } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import type { ConnectionFacts, TriggerHost } from "@tradewind/sdk/program";
import { connectionMissing, connectionUnusable } from "./trigger-error.ts";

const SECRET_NAME = /pass|secret|token|key|credential|auth|header/i;

export class OpenConnection {
  readonly facts: ConnectionFacts;
  readonly #extra: Readonly<Record<string, Json>>;

  constructor(facts: ConnectionFacts) {
    this.facts = facts;
    const { extra } = facts;
    this.#extra = isObject(extra) ? extra : {};
  }

  /** Changes with any change of the connection: clients are shared under this key. */
  get fingerprint(): string {
    const digest = createHash("sha256").update(JSON.stringify(this.facts)).digest("hex");
    return `${this.facts.id}:${digest}`;
  }

  /** A string of `extra`, under the first of these names that exists. */
  option(...names: readonly string[]): string | null {
    for (const name of names) {
      const value = this.#extra[name];
      if (typeof value === "string" && value !== "") return value;
      if (typeof value === "number" || typeof value === "boolean") return String(value);
    }
    return null;
  }

  /** An object of strings in `extra`. */
  options(name: string): Readonly<Record<string, string>> {
    const value = this.#extra[name] ?? {};
    if (!isObject(value)) throw this.unusable(`"${name}" of its extra has to be an object`);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, String(item)]));
  }

  requiredHost(): string {
    if (this.facts.host === null || this.facts.host === "") throw this.unusable("it has no host");
    return this.facts.host;
  }

  unusable(what: string): Error {
    return connectionUnusable(this.facts.id, what);
  }
}

/** Reads the connection and masks its secrets. */
export async function openConnection(
  host: TriggerHost,
  id: string,
  hide: (secret: string) => void,
): Promise<OpenConnection> {
  const facts = await host.connection(id);
  if (facts === undefined) throw connectionMissing(id);
  if (facts.password !== null) hide(facts.password);
  collectSecrets(facts.extra, false, hide);
  return new OpenConnection(facts);
}

function collectSecrets(value: Json, isSecret: boolean, hide: (secret: string) => void): void {
  if (typeof value === "string" && isSecret) hide(value);
  else if (Array.isArray(value)) for (const item of value) collectSecrets(item, isSecret, hide);
  else if (isObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      collectSecrets(item, isSecret || SECRET_NAME.test(name), hide);
    }
  }
}

function isObject(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
