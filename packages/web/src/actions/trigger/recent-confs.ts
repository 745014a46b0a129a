/** Params of earlier runs, to start from. Pure. */

type Conf = Readonly<Record<string, unknown>>;

export interface RecentConf {
  readonly conf: Conf;
  /** When it was used last. */
  readonly at: string;
  /** "region=us, rows=2". */
  readonly text: string;
}

const MOST = 8;

/** Each conf once, the latest first; runs with the defaults alone are left out. */
export function recentConfs(
  runs: readonly { readonly conf: Conf | null; readonly run_after: string }[],
): RecentConf[] {
  const found = new Map<string, RecentConf>();
  for (const { conf, run_after } of runs) {
    if (conf === null || Object.keys(conf).length === 0) continue;
    const key = JSON.stringify(Object.entries(conf).sort(([a], [b]) => (a < b ? -1 : 1)));
    if (!found.has(key)) found.set(key, { conf, at: run_after, text: textOf(conf) });
  }
  return [...found.values()].slice(0, MOST);
}

function textOf(conf: Conf): string {
  return Object.entries(conf)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}
