/**
 * Answers triggers that request a variable or a connection, and masks the secrets in everything that triggers print
 * from then on: they share a process, so any trigger may print a secret that another one received.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { ErrorFacts } from "@tradewind/sdk/program";
import { maskedError } from "../../log/masked-error.ts";
import { SecretMask } from "../../secret/mask.ts";
import { connectionSecrets, variableSecrets } from "../../secret/secret-forms.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { withMissingVariables } from "../../service/missing-variable.ts";
import type { TriggerServices } from "../contract.ts";
import type { LogRecord, TriggerQuestion } from "./runner-protocol.ts";

export class RunnerAnswers {
  readonly #services: TriggerServices;
  readonly #logger: Logger;
  readonly #mask = new SecretMask();

  constructor(services: TriggerServices, logger: Logger) {
    this.#services = services;
    this.#logger = logger;
  }

  async answer(ask: TriggerQuestion): Promise<{ readonly value?: Json; readonly error?: string }> {
    const what = ask.what === "variable" ? `variable "${ask.key}"` : `connection "${ask.connectionId}"`;
    try {
      const value = await this.#read(ask);
      return value === undefined ? {} : { value };
    } catch (error) {
      this.#logger.error("a request of a trigger could not be answered", { what, error: messageOf(error) });
      // The details (hosts, statements) are for the operator, not for user code.
      return { error: `The engine could not read ${what}; see its log for the reason.` };
    }
  }

  error(facts: ErrorFacts): ErrorFacts {
    const error = maskedError(facts, this.#mask);
    return { ...error, message: withMissingVariables(error.message, "for the triggerer") };
  }

  text(text: string): string {
    return this.#mask.whole(text);
  }

  record({ message, fields, ...rest }: LogRecord): LogRecord {
    if (this.#mask.empty) return fields === undefined ? { ...rest, message } : { ...rest, message, fields };
    const masked = { ...rest, message: this.#mask.whole(message) };
    return fields === undefined ? masked : { ...masked, fields: this.#fields(fields) };
  }

  #fields(fields: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
    const text = this.#mask.whole(JSON.stringify(fields));
    try {
      return JSON.parse(text) as Record<string, Json>;
    } catch {
      return { fields: text };
    }
  }

  async #read(ask: TriggerQuestion): Promise<Json | undefined> {
    if (ask.what === "variable") {
      const value = await this.#services.variable(ask.key);
      this.#hide(variableSecrets(ask.key, value ?? ""));
      return value;
    }
    const facts = await this.#services.connection(ask.connectionId);
    if (facts === undefined) return undefined;
    this.#hide(connectionSecrets(facts));
    return { ...facts };
  }

  #hide(secrets: readonly string[]): void {
    for (const secret of secrets) this.#mask.add(secret);
  }
}
