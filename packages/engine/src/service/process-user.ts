/**
 * The accounts of child processes when Tradewind is started as root. Numbers, because a machine may lack a tool to create
 * users. They are in a range that neither distributions (up to 60000) nor systemd (61184 to 65519) assign, and below
 * 65536, the limit of many containers.
 */

/** The embedded PostgreSQL. */
export const POSTGRES_UID = 60_801;
/** User code: tasks, triggers, timetables, DAG files. Differs from PostgreSQL's: a task must not read the database's files. */
export const USER_CODE_UID = 60_802;

export interface ProcessUser {
  readonly uid: number;
  readonly gid: number;
  /** Its HOME: the engine's home is closed to it. */
  readonly home: string;
}

/** Spawn options of a process that runs user code; without a user, the account of the engine. */
export function userCodeProcess(
  environment: Readonly<Record<string, string>>,
  user: ProcessUser | null | undefined,
): { readonly env: Readonly<Record<string, string>>; readonly uid?: number; readonly gid?: number } {
  if (!user) return { env: environment };
  return { env: { ...environment, HOME: user.home }, uid: user.uid, gid: user.gid };
}
