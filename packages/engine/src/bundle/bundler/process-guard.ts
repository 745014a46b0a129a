/**
 * Prevents a DAG file's import from ending or changing the process it shares with other files: `process.exit` becomes an
 * error of the file that called it, uncaught exceptions are attributed to the file whose code threw them, and the
 * environment and working directory are restored afterwards.
 */

/** One guarded import. */
interface Import {
  /** Rejects on an uncaught error of the import, which might otherwise never settle. */
  readonly slipped: Promise<never>;
  /** Resolves one turn later, when unhandled rejections have surfaced. */
  settled(): Promise<void>;
}

export interface ProcessGuard {
  begin(url: string): Import;
  end(): void;
  /** Node's own exit. */
  exit(code: number): never;
}

export function guardProcess(onStray: (message: string) => void): ProcessGuard {
  const exit = process.exit.bind(process);
  const home = process.cwd();
  const environment = { ...process.env };
  let current: { readonly url: string; readonly fail: (error: unknown) => void } | null = null;

  const catchAll = (error: unknown): void => {
    const stack = error instanceof Error ? (error.stack ?? "") : "";
    // Without a stack, the running file is the only candidate.
    if (current && (stack === "" || stack.includes(current.url) || !stack.includes(`/dag-${process.pid}-`))) {
      current.fail(error);
    } else {
      onStray(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
    }
  };
  process.on("uncaughtException", catchAll);
  process.on("unhandledRejection", catchAll);
  process.exit = ((code?: number | string | null) => {
    const error = Object.assign(
      new Error(
        `process.exit(${code ?? ""}) was called while the file was imported: a DAG file must only define DAGs.`,
      ),
      { code: "DAG_IMPORT_EXIT" },
    );
    catchAll(error);
    throw error;
  }) as typeof process.exit;

  return {
    exit,
    begin(url) {
      const { promise: slipped, reject: fail } = Promise.withResolvers<never>();
      slipped.catch(() => undefined);
      current = { url, fail };
      return {
        slipped,
        async settled() {
          await Promise.race([slipped, new Promise((resolve) => setImmediate(resolve))]);
        },
      };
    },
    end() {
      current = null;
      process.exitCode = undefined;
      if (process.cwd() !== home) process.chdir(home);
      for (const key of Object.keys(process.env)) if (!(key in environment)) delete process.env[key];
      Object.assign(process.env, environment);
    },
  };
}
