/** What triggers may read, served from the database. Secrets among the values are masked in logs. */
import { SecretMask } from "../../secret/mask.ts";
import type { SecretBox } from "../../secret/secret-box.ts";
import { connectionSecrets, variableSecrets } from "../../secret/secret-forms.ts";
import type { Database } from "../../store/database/database.ts";
import { openConnection } from "../../store/settings/connections.ts";
import { findVariable } from "../../store/settings/variables.ts";
import type { TriggerServices } from "../contract.ts";

/** One mask for all: triggers share a process, and a trigger may print a secret that another received. */
export function triggerServices(
  database: Database,
  secretBox: SecretBox,
): { readonly services: TriggerServices; readonly mask: SecretMask } {
  const mask = new SecretMask();
  const hide = (secrets: readonly string[]): void => {
    for (const secret of secrets) mask.add(secret);
  };
  const services: TriggerServices = {
    async variable(key) {
      const value = (await findVariable(database, secretBox, key))?.value;
      if (value !== undefined) hide(variableSecrets(key, value));
      return value;
    },
    async connection(id) {
      const connection = await openConnection(database, secretBox, id);
      if (connection !== undefined) hide(connectionSecrets(connection));
      return connection;
    },
  };
  return { services, mask };
}
