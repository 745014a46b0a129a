/** The state diagrams of the docs, drawn from the transition table. One colon per line: renderers reject a second one. */
import type { Move } from "../run/transitions.ts";
import { RUN_EDITS, RUN_MOVES, TASK_EDITS, TASK_MOVES } from "../run/transitions.ts";

export function taskStateDiagram(): string {
  return diagram(TASK_MOVES, "pending", TASK_EDITS);
}

export function runStateDiagram(): string {
  return diagram(RUN_MOVES, "queued", RUN_EDITS);
}

type MoveTable = Readonly<Record<string, Readonly<Record<string, Move | undefined>>>>;

function diagram(moves: MoveTable, first: string, edits: Readonly<Record<string, string>>): string {
  const lines = ["stateDiagram-v2", `  [*] --> ${first}`];
  for (const [from, targets] of Object.entries(moves)) {
    const ways = Object.entries(targets);
    for (const [to, move] of ways) if (move) lines.push(`  ${from} --> ${to}: ${move.by} · ${move.why}`);
    if (ways.length === 0) lines.push(`  ${from} --> [*]`);
  }
  const byHand = Object.entries(edits).map(([to, edit]) => `    ${edit} · any state to ${to}`);
  return [...lines, `  note right of ${first}`, ...byHand, "  end note", ""].join("\n");
}
