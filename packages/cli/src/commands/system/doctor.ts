import { Command } from "@commander-js/extra-typings";
import { type Check, checkInstallation } from "../../doctor/checks.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import type { Session } from "../../session.ts";

const MARKS = { ok: ["green", "ok  "], warn: ["yellow", "warn"], fail: ["red", "fail"] } as const;

export function command(session: Session) {
  return new Command("doctor")
    .description("check this installation and suggest fixes; exit 1 if a check fails")
    .addHelpText("after", examples("tradewind doctor", "tradewind doctor --json"))
    .action(async () => {
      const checks: Check[] = [];
      for await (const check of checkInstallation(session)) {
        checks.push(check);
        if (session.format === "table") print(session, check);
      }
      if (session.format !== "table") await session.printObject(checks, []);
      const amount = (result: Check["result"]) =>
        checks.reduce((sum, check) => sum + (check.result === result ? (check.count ?? 1) : 0), 0);
      const [failed, warned] = [amount("fail"), amount("warn")];
      if (failed > 0) session.exitCode = EXIT.failed;
      if (failed + warned === 0) session.note("All checks passed.");
      else session.note(`${failed} failed, ${warned} warning${warned === 1 ? "" : "s"}.`);
    });
}

function print(session: Session, check: Check): void {
  const [style, label] = MARKS[check.result];
  session.terminal.data(`${session.terminal.paint(style, label)}  ${check.name}: ${check.says}`);
  if (check.remedy) session.terminal.data(`      ${session.terminal.paint("dim", "→")} ${check.remedy}`);
}
