/** Reads stored secrets from the database, which needs its address and the installation's secret key. */
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Session } from "../session.ts";

type Engine = typeof import("@tradewind/engine");
type Secrets = NonNullable<Awaited<ReturnType<Engine["readSecrets"]>>>;

export async function withSecrets<T>(
  session: Session,
  work: (opened: { readonly engine: Engine; readonly secrets: Secrets }) => Promise<T>,
): Promise<T> {
  if (!session.hasDatabase) throw missing(session, `no database in ${session.home}`);
  const engine = await import("@tradewind/engine");
  const config = engine.resolveConfig({ home: session.options.home }, session.host.env);
  const { database, stop } = await engine.openDatabase(config);
  try {
    const secrets = await engine.readSecrets(config, database, session.host.env.TRADEWIND_SECRET_KEY);
    if (secrets === null) throw missing(session, `no secret key in ${config.home}`);
    return await work({ engine, secrets });
  } finally {
    await stop();
  }
}

function missing(session: Session, why: string): CliError {
  return new CliError("TW_CLI_NO_DATABASE", `${why}; the server does not send secrets over the network.`, {
    exit: EXIT.notFound,
    remedy: `run the command where the home of a service is (--home, now ${session.home}), or set DATABASE_URL and TRADEWIND_SECRET_KEY`,
  });
}
