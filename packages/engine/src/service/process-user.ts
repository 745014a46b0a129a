/**
 * The accounts of child processes when Tradewind is started as root. Numbers, because a machine need not have a tool to
 * create users: they lie where neither distributions (up to 60000) nor systemd (61184 to 65519) assign any, and below
 * 65536, the most that many containers have.
 */

/** The embedded PostgreSQL. */
export const POSTGRES_UID = 60_801;
/** User code: tasks, triggers, timetables, DAG files. Not PostgreSQL's: a task must not reach the database's files. */
export const USER_CODE_UID = 60_802;

export interface ProcessUser {
  readonly uid: number;
  readonly gid: number;
  /** Its HOME: that of the engine is closed to it. */
  readonly home: string;
}

/** How a process that runs user code is spawned; without a user it is the engine's own. */
export function userCodeProcess(
  environment: Readonly<Record<string, string>>,
  user: ProcessUser | null | undefined,
): { readonly env: Readonly<Record<string, string>>; readonly uid?: number; readonly gid?: number } {
  if (!user) return { env: environment };
  return { env: { ...environment, HOME: user.home }, uid: user.uid, gid: user.gid };
}
