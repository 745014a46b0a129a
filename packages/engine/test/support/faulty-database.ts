/** A database connection with faults at single statements: of a process that dies, sleeps or loses an answer there. */
import { CommitUnknownError, type Database } from "../../src/store/database/database.ts";
import type { Call, Statement } from "../../src/store/database/statement.ts";

type Work = () => Promise<unknown>;

interface Hook {
  readonly before?: Work | undefined;
  readonly after?: Work | undefined;
}

export class DatabaseFaults {
  readonly database: Database;
  readonly #hooks = new Map<string, Hook>();
  readonly #death = Promise.withResolvers<never>();
  /** Resolved while the process is awake. */
  #awake: Promise<unknown> = Promise.resolve();
  #isDead = false;

  constructor(real: Database) {
    this.#death.promise.catch(() => {});
    const sent = async <T>(names: readonly string[], send: () => Promise<T>): Promise<T> => {
      if (this.#isDead) return this.#death.promise;
      await Promise.race([this.#awake, this.#death.promise]);
      const hooks = names.flatMap((name) => this.#hooks.get(name) ?? []);
      for (const { before } of hooks) await Promise.race([before?.(), this.#death.promise]);
      const result = await Promise.race([send(), this.#death.promise]);
      for (const { after } of hooks) await Promise.race([after?.(), this.#death.promise]);
      return result;
    };
    const replaced: Record<string, unknown> = {
      pipeline: (calls: readonly Call[]) =>
        sent(
          calls.map((call) => call.statement.name),
          () => real.pipeline(calls),
        ),
    };
    for (const how of ["rows", "one", "oneSoon"] as const)
      replaced[how] = (statement: Statement, values?: readonly unknown[]) =>
        sent([statement.name], () => real[how](statement, values));
    this.database = new Proxy(real, {
      get: (target, key) => {
        const found = replaced[key as string] ?? Reflect.get(target, key, target);
        return typeof found === "function" && !(key in replaced) ? found.bind(target) : found;
      },
    });
  }

  /** Every call from now on fails, and so do those that wait: for the database, the process is dead. */
  kill(): void {
    this.#isDead = true;
    this.#death.reject(Object.assign(new Error("killed by the test"), { code: "ECONNRESET" }));
  }

  /** The process dies at its next use of this statement; resolves when it has. */
  async diesAt(where: "before" | "after", statement: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#hooks.set(statement, {
      [where]: async () => {
        this.kill();
        resolve();
        await this.#death.promise;
      },
    });
    return promise;
  }

  /** The next use of this statement is stored, and its answer is lost; resolves then. */
  async losesAnswerOf(statement: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#hooks.set(statement, {
      after: async () => {
        this.#hooks.delete(statement);
        resolve();
        throw new CommitUnknownError(new Error("lost by the test"));
      },
    });
    return promise;
  }

  /** The next use of this statement waits until it is let through; the process continues otherwise. */
  holds(statement: string): { readonly held: Promise<void>; letThrough(): void } {
    const held = Promise.withResolvers<void>();
    const through = Promise.withResolvers<void>();
    this.#hooks.set(statement, {
      before: async () => {
        this.#hooks.delete(statement);
        held.resolve();
        await through.promise;
      },
    });
    return { held: held.promise, letThrough: () => through.resolve() };
  }

  /** The process sleeps before its next use of this statement, and makes no other calls meanwhile. */
  sleepsBefore(statement: string): { readonly asleep: Promise<void>; wake(): void } {
    const asleep = Promise.withResolvers<void>();
    const awake = Promise.withResolvers<void>();
    this.#hooks.set(statement, {
      before: async () => {
        this.#hooks.delete(statement);
        this.#awake = awake.promise;
        asleep.resolve();
        await awake.promise;
      },
    });
    return { asleep: asleep.promise, wake: () => awake.resolve() };
  }
}
