import type { Config, OpenedDatabase } from "@tradewind/engine";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";

/** Whether the secret key of this home or shell decrypts the stored variables and connections. */
export async function* checkSecrets(
  session: Session,
  config: Config,
  database: OpenedDatabase["database"],
): AsyncGenerator<Check> {
  const name = "secrets";
  const { EngineError, probeSecrets } = await import("@tradewind/engine");
  try {
    const probe = await probeSecrets(config, database, session.host.env.TRADEWIND_SECRET_KEY);
    if (probe === null) return;
    const { key, unreadable } = probe;
    if (unreadable === null) {
      yield { name, result: "ok", says: `all stored secrets can be decrypted with ${key}` };
      return;
    }
    const { connections, example, variables } = unreadable;
    const many = [...counted(variables, "variable"), ...counted(connections, "connection")].join(" and ");
    yield {
      name,
      result: "warn",
      says: `${many} cannot be decrypted with ${key}, e.g. ${example} [SECRET_UNREADABLE]`,
      remedy:
        "give all services the same secret key: TRADEWIND_SECRET_KEY, or a copy of one secret.key; if the key is lost, set them again",
    };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    yield { name, result: "fail", says: `${error.message} [${error.code}]` };
  }
}

function counted(count: number, what: string): string[] {
  return count === 0 ? [] : [`${count} ${what}${count === 1 ? "" : "s"}`];
}
