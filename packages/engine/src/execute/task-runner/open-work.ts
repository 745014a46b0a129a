/**
 * Tracks work that an attempt has started and not finished, e.g. because an `await` is missing: timers, requests, child
 * processes, connections that wait for a response. Async hooks see the start and the callback of each; an
 * AsyncLocalStorage has the attempt. Promises are not tracked: that would slow down all user code, and a pending promise
 * that nothing can settle is not work.
 *
 * Not work: unref'd resources, and connections whose last traffic was a response (idle keep-alive sockets and pools). A
 * timer that a package sets for itself, e.g. to close an idle connection, is not work either.
 */
import { AsyncLocalStorage, createHook, type HookCallbacks } from "node:async_hooks";
import type { ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { OpenWork } from "@tradewind/sdk/program";

/** Work that ends within this time does not count as left open. */
const SETTLE_MS = 100;
const LOOK_MS = 2;
/** Deep enough to reach the code that called a client library. */
const FRAMES = 25;

type Kind =
  | "timer"
  | "immediate"
  | "process"
  | "connect"
  | "handshake"
  | "answer"
  | "stream"
  | "job"
  | "request";

/** By the types of async_hooks. All but sockets, intervals and streams call back once, which ends them. */
const KINDS: Readonly<Record<string, { readonly kind: Kind; readonly what: string }>> = {
  Timeout: { kind: "timer", what: "timer" },
  Immediate: { kind: "immediate", what: "immediate" },
  PROCESSWRAP: { kind: "process", what: "child process" },
  TCPCONNECTWRAP: { kind: "connect", what: "connection" },
  PIPECONNECTWRAP: { kind: "connect", what: "connection" },
  TLSWRAP: { kind: "handshake", what: "TLS handshake" },
  HTTP2STREAM: { kind: "stream", what: "HTTP/2 request" },
  GETADDRINFOREQWRAP: { kind: "request", what: "DNS lookup" },
  GETNAMEINFOREQWRAP: { kind: "request", what: "DNS lookup" },
  QUERYWRAP: { kind: "request", what: "DNS lookup" },
  FSREQCALLBACK: { kind: "request", what: "file operation" },
  FSREQPROMISE: { kind: "request", what: "file operation" },
  FILEHANDLECLOSEREQ: { kind: "request", what: "file operation" },
  ZLIB: { kind: "job", what: "compression" },
  SCRYPTREQUEST: { kind: "job", what: "key derivation" },
  PBKDF2REQUEST: { kind: "job", what: "key derivation" },
};

interface Started {
  readonly kind: Kind;
  readonly what: string;
  readonly attempt: object;
  readonly resource: object;
  /** The stack of the start, built when it is read. Null where building it would cost as much as the request. */
  readonly at: { readonly stack: string } | null;
}

export class OpenWorkTracker {
  readonly #attempts = new AsyncLocalStorage<object | null>();
  readonly #open = new Map<number, Started>();
  readonly #ended = new WeakSet<object>();

  private constructor() {
    const init: HookCallbacks["init"] = (id, type, _trigger, resource) => {
      const kind = KINDS[type];
      if (kind !== undefined) this.#add(id, kind, resource, init!);
    };
    const before = (id: number) => this.#before(id);
    const destroy = (id: number) => void this.#open.delete(id);
    createHook({ trackPromises: false, init, before, destroy }).enable();
    watchWrites((socket, write) => {
      const id = socket._handle?.getAsyncId?.();
      if (id !== undefined && !socket._isStdio) this.#add(id, WRITTEN, socket, write);
    });
  }

  /** One per process, even with several copies of this module. */
  static installed(): OpenWorkTracker {
    const home = globalThis as { [TRACKER]?: OpenWorkTracker };
    home[TRACKER] ??= new OpenWorkTracker();
    return home[TRACKER];
  }

  /** Everything that `work` starts belongs to the attempt until the attempt is closed. */
  run<T>(attempt: object, work: () => T): T {
    return this.#attempts.run(attempt, work);
  }

  /** Everything that `work` starts belongs to no attempt. */
  outside<T>(work: () => T): T {
    return this.#attempts.run(null, work);
  }

  /** The attempt whose code is running; null: none. */
  current(): object | null {
    return this.#attempts.getStore() ?? null;
  }

  /** Work that is still open after SETTLE_MS. */
  async leftOpen(attempt: object): Promise<readonly OpenWork[]> {
    const until = performance.now() + SETTLE_MS;
    // One turn, so that pending starts happen.
    await this.outside(() => nextTurn());
    while (this.hasOpen(attempt)) {
      if (performance.now() >= until) return this.#openOf(attempt).map(describe);
      await this.outside(() => sleep(LOOK_MS));
    }
    return [];
  }

  hasOpen(attempt: object): boolean {
    return this.#open.size > 0 && this.#openOf(attempt).length > 0;
  }

  /** Stops tracking the work of the attempt, and what that work starts. */
  close(attempt: object): void {
    this.#ended.add(attempt);
    if (this.#open.size === 0) return;
    for (const [id, started] of this.#open) if (started.attempt === attempt) this.#open.delete(id);
  }

  #openOf(attempt: object): Started[] {
    return [...this.#open.values()].filter((started) => started.attempt === attempt && isOpen(started));
  }

  /** @param from The stack begins above this frame. */
  #add(id: number, { kind, what }: Pick<Started, "kind" | "what">, resource: object, from: Caller): void {
    const attempt = this.#attempts.getStore();
    if (!attempt || this.#ended.has(attempt)) return;
    const at = kind === "request" ? null : stackAbove(from);
    this.#open.set(id, { kind, what, attempt, resource, at });
  }

  #before(id: number): void {
    const started = this.#open.get(id);
    // A stream ends when it is destroyed; before that, each part of its response is a callback.
    if (started === undefined || started.kind === "stream") return;
    if (started.kind !== "timer") {
      this.#open.delete(id);
      return;
    }
    const timer = started.resource as Timer;
    // A background job of a package: neither its timer nor what it starts belongs to the attempt.
    if (!timer.hasRef()) this.#attempts.enterWith(null);
    if (timer._repeat === null) this.#open.delete(id);
  }
}

const TRACKER = Symbol.for("tradewind.openWork");
const WRITTEN = { kind: "answer", what: "connection" } as const;

interface Timer {
  readonly _repeat: number | null;
  readonly _onTimeout: unknown;
  hasRef(): boolean;
}

interface WrittenSocket extends Socket {
  readonly _handle?: { getAsyncId?(): number; hasRef(): boolean } | null;
  readonly _isStdio?: boolean;
}

type Caller = (...args: never[]) => unknown;
type Write = (this: WrittenSocket, ...args: unknown[]) => unknown;

/** Async hooks report the reads of a socket, not its writes. */
function watchWrites(wrote: (socket: WrittenSocket, write: Write) => void): void {
  const prototype = Socket.prototype as unknown as { _writeGeneric?: Write };
  const write = prototype._writeGeneric;
  if (write === undefined) return;
  prototype._writeGeneric = function watched(...args) {
    wrote(this, watched);
    return write.apply(this, args);
  };
}

function isOpen({ at, kind, resource }: Started): boolean {
  switch (kind) {
    case "timer": {
      const timer = resource as Timer;
      return timer.hasRef() && (isPromised(timer._onTimeout) || isAuthors(at?.stack ?? ""));
    }
    case "process":
      return (resource as { hasRef(): boolean }).hasRef();
    case "answer": {
      const socket = resource as WrittenSocket;
      // A socket that is being closed sends nothing more.
      return !socket.destroyed && !socket.writableEnded && socket._handle?.hasRef() === true;
    }
    case "job": {
      // Without either it is the synchronous form, which has returned.
      const { buffer, ondone } = resource as { readonly buffer?: unknown; readonly ondone?: unknown };
      return Boolean(buffer) || typeof ondone === "function";
    }
    default:
      return true;
  }
}

/** True for `setTimeout(resolve, 100)`: the callback is the function that V8 passes to the executor of a promise. */
function isPromised(callback: unknown): boolean {
  return typeof callback === "function" && callback.name === "" && NATIVE.test(String(callback));
}

/** True if the first frame outside of Node is not in a package. */
function isAuthors(stack: string): boolean {
  const frame = stack.split("\n").find((line) => FRAME.test(line) && !NODE.test(line));
  return frame !== undefined && !frame.includes("/node_modules/");
}

const NATIVE = /^function \(\) \{ \[native code\] \}$/;
const FRAME = /^\s+at /;
const NODE = /\(?node:/;

function describe({ at, kind, resource, what }: Started): OpenWork {
  return { what: `${what}${detail(kind, resource)}`, stack: at?.stack ?? null };
}

function detail(kind: Kind, resource: object): string {
  if (kind === "process") return pidText(resource as Pick<ChildProcess, "pid">);
  if (kind === "connect") {
    const { address, port } = resource as { readonly address?: string; readonly port?: number };
    return `${peerText(address, port)} that is being opened`;
  }
  if (kind !== "answer") return "";
  const { remoteAddress, remotePort } = resource as Socket;
  return `${peerText(remoteAddress, remotePort)} that waits for an answer`;
}

function pidText({ pid }: { readonly pid?: number | undefined }): string {
  return pid === undefined ? "" : ` ${pid}`;
}

function peerText(address: string | undefined, port: number | undefined): string {
  return address === undefined ? "" : ` to ${address}${port === undefined ? "" : `:${port}`}`;
}

function stackAbove(from: Caller): { readonly stack: string } {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = FRAMES;
  const at = {} as { readonly stack: string };
  Error.captureStackTrace(at, from);
  Error.stackTraceLimit = limit;
  return at;
}
