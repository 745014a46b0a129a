/**
 * The process in which user-defined timetables run: one request at a time. It has no credentials and talks only to its
 * supervisor; when the supervisor ends, it ends itself, even from an endless loop. A class that never answers blocks the
 * process: the supervisor kills it, and starts another for the next request.
 */
import { Socket } from "node:net";
import { errorFacts } from "@tradewind/sdk/error-facts";
import type { ErrorFacts } from "@tradewind/sdk/program";
import { JsonLines } from "../../child/json-lines.ts";
import { withHint } from "../../code/error-hints.ts";
import { dieWithParent } from "../../code/loader/orphan-watch.ts";
import { loadPrograms } from "../../code/loader/programs.ts";
import {
  MAX_MESSAGE_LENGTH,
  TIMETABLE_FD,
  type TimetableAnswer,
  type TimetableAsk,
} from "../timetable-protocol.ts";
import { pieceOf } from "./piece.ts";

process.setSourceMapsEnabled(true);
dieWithParent();
const socket = new Socket({ fd: TIMETABLE_FD });
const channel = new JsonLines<TimetableAnswer>(socket, {
  message: (raw) => void answer(raw as TimetableAsk),
  broken: endAll,
});
type Outcome = TimetableAnswer["outcome"];
let current: { readonly n: number; readonly bundle: string } | null = null;

socket.on("close", endAll);
// Uncaught errors of bundle code leave the process in an unknown state, so the request fails with them.
process.on("uncaughtException", crash);
process.on("unhandledRejection", crash);

async function answer({ n, bundle, dagId, call, piece }: TimetableAsk): Promise<void> {
  current = { n, bundle };
  let outcome: Outcome;
  try {
    const program = (await loadPrograms(bundle)).get(dagId);
    if (program?.due === undefined) {
      throw Object.assign(new Error(`The bundle has no timetable for DAG "${dagId}".`), {
        code: "BUNDLE_WITHOUT_DAG",
      });
    }
    const due = program.due.bind(program);
    outcome = piece === undefined ? await due(call) : await pieceOf(due, call, piece);
  } catch (error) {
    outcome = { ok: false, error: errorFacts(error) };
  }
  send(n, outcome);
}

function send(n: number, outcome: Outcome, done?: () => void): void {
  if (current?.n !== n) return;
  const { bundle } = current;
  current = null;
  channel.send(
    { n, outcome: outcome.ok ? outcome : { ok: false, error: cut(withHint(outcome.error, bundle)) } },
    done,
  );
}

function cut({ name, message, code }: ErrorFacts): ErrorFacts {
  const short = (text: string) => text.slice(0, MAX_MESSAGE_LENGTH);
  return {
    name: short(name),
    message: short(message),
    stack: null,
    code: code === null ? null : short(code),
  };
}

function crash(error: unknown): void {
  if (current === null) process.exit(1);
  send(current.n, { ok: false, error: errorFacts(error) }, () => process.exit(1));
}

/** The supervisor is gone: this process ends together with every process it started. */
function endAll(): void {
  process.kill(-process.pid, "SIGKILL");
}
