import { availableParallelism } from "node:os";
import type { NoticeAction } from "@tradewind/sdk/manifest";
import { readNotices } from "./configured-notices.ts";
import { EngineError } from "./errors.ts";
import { executorName, type GivenExecutor, readExecutors } from "./executor-settings.ts";
import { KUBERNETES_SETTINGS, type KubernetesConfig } from "./kubernetes-settings.ts";
import { LOG_LEVELS, type LogLevel } from "./logger.ts";
import {
  allowList,
  databaseUrl,
  duration,
  file,
  folder,
  host,
  names,
  oneOf,
  redisUrl,
  serverUrl,
  signalService,
  storeLocation,
  Unfit,
  whole,
} from "./setting-values.ts";

/** The settings of a service: by flag, else by environment variable, else by default. */
export interface Config extends KubernetesConfig {
  readonly home: string;
  readonly dags: string;
  readonly host: string;
  readonly port: number;
  /** For the probes of a container platform. Undefined: not served. */
  readonly healthPort: number | undefined;
  /** The external address of the API, e.g. behind a proxy. */
  readonly publicUrl: string | undefined;
  /** Undefined: the embedded PostgreSQL under home. */
  readonly databaseUrl: string | undefined;
  readonly databaseConnections: number;
  /** The executor of tasks that name none. */
  readonly executor: string;
  /** Executors besides "local", "queue" and "kubernetes", by name. */
  readonly executors: Readonly<Record<string, GivenExecutor>>;
  /** The address of the Redis of the queue executor. Undefined: there is no queue executor. */
  readonly redisUrl: string | undefined;
  /** Maximum number of attempts that a scheduler has in the queues, on workers or in pods. */
  readonly queueParallelism: number;
  /** Warm task processes; 0 starts a fresh process for each task, without a limit. */
  readonly parallelism: number;
  /** Additional slots for streaming tasks only. */
  readonly streamingSlots: number;
  /** The account that user code runs as, by name or number; needs root. Undefined: chosen automatically if started as root. */
  readonly taskUser: string | undefined;
  /** Additional environment variables for user code; `*` stands for any text. */
  readonly taskEnv: readonly string[];
  /** Grace period between the stop request of a task and the kill of its process group. */
  readonly stopGraceMs: number;
  /** How long running tasks may continue after a scheduler received a stop request. Undefined: the default of the command. */
  readonly drainMs: number | undefined;
  /** Maximum number of items that a mapped task may run over. */
  readonly maxMapLength: number;
  /** Store of outputs that are too large for the database: file: (under home), file:/folder, s3://bucket/prefix. */
  readonly outputStore: string;
  /** Store of the logs of tasks: file: (under home), file:/folder, s3://bucket/prefix. */
  readonly logStore: string;
  /** Outputs up to this many characters of JSON stay in the database. */
  readonly outputInlineLimit: number;
  /** Maximum size of an output, in bytes of JSON. */
  readonly outputLimit: number;
  /** Triggers that a triggerer runs at once; timed triggers do not count. */
  readonly triggererCapacity: number;
  /** Resident memory limit of a trigger process; a process that exceeds it is ended. */
  readonly triggererMemoryMb: number;
  /** The queues whose triggers a triggerer runs. */
  readonly triggererQueues: readonly string[];
  /** The signal service: "postgres", the address of a remote one (grpc://host:port), or a module that creates one. */
  readonly signals: string;
  /** For a remote signal service. */
  readonly signalsToken: string | undefined;
  /** PEM files for a remote signal service with TLS: the trusted CA, and the client's certificate. */
  readonly signalsCa: string | undefined;
  readonly signalsClientCert: string | undefined;
  readonly signalsClientKey: string | undefined;
  /** The port on which signals are served over gRPC. Undefined: not served. */
  readonly signalsPort: number | undefined;
  /** PEM files for serving signals with TLS; with `signalsTlsCa` clients need a certificate, too. */
  readonly signalsTlsCert: string | undefined;
  readonly signalsTlsKey: string | undefined;
  readonly signalsTlsCa: string | undefined;
  /** The notices for every run that fails. */
  readonly onFailure: readonly NoticeAction[];
  readonly logLevel: LogLevel;
  readonly logFormat: "pretty" | "json";
}

export type ConfigName = keyof Config;

export interface ConfigSources {
  /** From the command line; absent if not given. */
  readonly flags?: Readonly<Partial<Record<ConfigName, string | number>>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/** One setting: its sources, and how its text is parsed. */
export interface Setting<T> {
  readonly flag: string;
  readonly variable: string;
  readonly fallback: string | undefined;
  readonly read: (text: string, cwd: string) => T;
}

type Settings = { readonly [Name in ConfigName]: Setting<Config[Name]> };

const SETTINGS: Settings = {
  home: { flag: "--home", variable: "TRADEWIND_HOME", fallback: ".tradewind", read: folder },
  dags: { flag: "--dags", variable: "TRADEWIND_DAGS", fallback: "dags", read: folder },
  host: { flag: "--host", variable: "TRADEWIND_HOST", fallback: "127.0.0.1", read: host },
  port: {
    flag: "--port",
    variable: "TRADEWIND_PORT",
    fallback: "8080",
    read: (text) => whole(text, 0, 65_535),
  },
  healthPort: {
    flag: "--health-port",
    variable: "TRADEWIND_HEALTH_PORT",
    fallback: undefined,
    read: (text) => whole(text, 1, 65_535),
  },
  publicUrl: {
    flag: "--public-url",
    variable: "TRADEWIND_PUBLIC_URL",
    fallback: undefined,
    read: serverUrl,
  },
  databaseUrl: { flag: "--database-url", variable: "DATABASE_URL", fallback: undefined, read: databaseUrl },
  databaseConnections: {
    flag: "--database-connections",
    variable: "TRADEWIND_DATABASE_CONNECTIONS",
    fallback: "10",
    read: (text) => whole(text, 1, 1_000),
  },
  executor: {
    flag: "--executor",
    variable: "TRADEWIND_EXECUTOR",
    fallback: "local",
    read: executorName,
  },
  executors: {
    flag: "--executors",
    variable: "TRADEWIND_EXECUTORS",
    fallback: "",
    read: readExecutors,
  },
  redisUrl: { flag: "--redis-url", variable: "REDIS_URL", fallback: undefined, read: redisUrl },
  queueParallelism: {
    flag: "--queue-parallelism",
    variable: "TRADEWIND_QUEUE_PARALLELISM",
    fallback: "10000",
    read: (text) => whole(text, 1, 1_000_000),
  },
  parallelism: {
    flag: "--parallelism",
    variable: "TRADEWIND_PARALLELISM",
    fallback: `${Math.max(4, 4 * availableParallelism())}`,
    read: (text) => whole(text, 0, 10_000),
  },
  streamingSlots: {
    flag: "--streaming-slots",
    variable: "TRADEWIND_STREAMING_SLOTS",
    fallback: "0",
    read: (text) => whole(text, 0, 10_000),
  },
  taskUser: {
    flag: "--task-user",
    variable: "TRADEWIND_TASK_USER",
    fallback: undefined,
    read: (text) => {
      if (/^(\d+(:\d+)?|[a-z_][\w.-]*\$?)$/i.test(text)) return text;
      throw new Unfit(`is ${JSON.stringify(text)}: it must be a user's name or number, such as 60802.`);
    },
  },
  taskEnv: { flag: "--task-env", variable: "TRADEWIND_TASK_ENV", fallback: "", read: allowList },
  stopGraceMs: {
    flag: "--stop-grace-ms",
    variable: "TRADEWIND_STOP_GRACE_MS",
    fallback: "5000",
    read: (text) => whole(text, 0, 3_600_000),
  },
  drainMs: {
    flag: "--drain",
    variable: "TRADEWIND_DRAIN",
    fallback: undefined,
    read: (text) => duration(text, 86_400_000),
  },
  maxMapLength: {
    flag: "--max-map-length",
    variable: "TRADEWIND_MAX_MAP_LENGTH",
    fallback: "100000",
    read: (text) => whole(text, 1, 10_000_000),
  },
  outputStore: {
    flag: "--output-store",
    variable: "TRADEWIND_OUTPUT_STORE",
    fallback: "file:",
    read: storeLocation,
  },
  logStore: {
    flag: "--log-store",
    variable: "TRADEWIND_LOG_STORE",
    fallback: "file:",
    read: storeLocation,
  },
  outputInlineLimit: {
    flag: "--output-inline-limit",
    variable: "TRADEWIND_OUTPUT_INLINE_LIMIT",
    fallback: "1048576",
    read: (text) => whole(text, 1_024, 16_777_216),
  },
  outputLimit: {
    flag: "--output-limit",
    variable: "TRADEWIND_OUTPUT_LIMIT",
    fallback: "268435456",
    // The longest string that JavaScript supports.
    read: (text) => whole(text, 1_024, 500_000_000),
  },
  triggererCapacity: {
    flag: "--capacity",
    variable: "TRADEWIND_TRIGGERER_CAPACITY",
    fallback: "10000",
    read: (text) => whole(text, 1, 1_000_000),
  },
  triggererMemoryMb: {
    flag: "--memory-mb",
    variable: "TRADEWIND_TRIGGERER_MEMORY_MB",
    fallback: "2048",
    read: (text) => whole(text, 128, 1_000_000),
  },
  triggererQueues: {
    flag: "--queues",
    variable: "TRADEWIND_TRIGGERER_QUEUES",
    fallback: "default",
    read: names,
  },
  signals: { flag: "--signals", variable: "TRADEWIND_SIGNALS", fallback: "postgres", read: signalService },
  signalsToken: {
    flag: "--signals-token",
    variable: "TRADEWIND_SIGNALS_TOKEN",
    fallback: undefined,
    read: (text) => text,
  },
  signalsCa: fileSetting("--signals-ca", "TRADEWIND_SIGNALS_CA"),
  signalsClientCert: fileSetting("--signals-client-cert", "TRADEWIND_SIGNALS_CLIENT_CERT"),
  signalsClientKey: fileSetting("--signals-client-key", "TRADEWIND_SIGNALS_CLIENT_KEY"),
  signalsPort: {
    flag: "--signals-port",
    variable: "TRADEWIND_SIGNALS_PORT",
    fallback: undefined,
    read: (text) => whole(text, 0, 65_535),
  },
  signalsTlsCert: fileSetting("--signals-tls-cert", "TRADEWIND_SIGNALS_TLS_CERT"),
  signalsTlsKey: fileSetting("--signals-tls-key", "TRADEWIND_SIGNALS_TLS_KEY"),
  signalsTlsCa: fileSetting("--signals-tls-ca", "TRADEWIND_SIGNALS_TLS_CA"),
  onFailure: {
    flag: "--on-failure",
    variable: "TRADEWIND_ON_FAILURE",
    fallback: "",
    read: readNotices,
  },
  logLevel: {
    flag: "--log-level",
    variable: "TRADEWIND_LOG_LEVEL",
    fallback: "info",
    read: (text) => oneOf(text, LOG_LEVELS),
  },
  logFormat: {
    flag: "--log-format",
    variable: "TRADEWIND_LOG_FORMAT",
    fallback: "pretty",
    read: (text) => oneOf(text, ["pretty", "json"] as const),
  },
  ...KUBERNETES_SETTINGS,
};

export function readConfig(sources: ConfigSources = {}): Config {
  const { flags = {}, env = process.env, cwd = process.cwd() } = sources;
  const value = <Name extends ConfigName>(name: Name): Config[Name] => {
    const setting = SETTINGS[name] as Setting<Config[Name]>;
    const flag = flags[name];
    // An empty variable counts as unset: shells and compose files clear variables that way.
    const [source, text] =
      flag !== undefined
        ? [setting.flag, `${flag}`]
        : env[setting.variable]
          ? [setting.variable, env[setting.variable]]
          : ["default", setting.fallback];
    if (text === undefined) return undefined as Config[Name];
    return readFrom(source, () => setting.read(text, cwd));
  };
  const values = Object.keys(SETTINGS).map((name) => [name, value(name as ConfigName)]);
  return Object.fromEntries(values) as Config;
}

/** For services that run beside others and so cannot bring their own database. */
export function requireDatabaseUrl(config: Config, service: string): string {
  if (config.databaseUrl !== undefined) return config.databaseUrl;
  throw new EngineError(
    "CONFIG_INVALID",
    `"tradewind ${service}" needs a database that others can reach: set DATABASE_URL (postgresql://user:password@host:5432/name), or run "tradewind standalone", which brings its own.`,
    { details: { setting: "DATABASE_URL" } },
  );
}

function readFrom<T>(source: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Unfit)) throw error;
    throw new EngineError("CONFIG_INVALID", `${source} ${error.message}`, { details: { setting: source } });
  }
}

function fileSetting(flag: string, variable: string): Setting<string | undefined> {
  return { flag, variable, fallback: undefined, read: file };
}

/** From command line flags (absent ones may be undefined) and environment. */
export function resolveConfig(
  flags: Readonly<Partial<Record<ConfigName, string | number | undefined>>>,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const given = Object.entries(flags).filter(([, value]) => value !== undefined);
  return readConfig({ flags: Object.fromEntries(given) as Record<ConfigName, string | number>, env });
}
