import type { Session } from "../session.ts";

/** Prints changed progress lines: live on a terminal, otherwise at most one per second, to keep log files small. */
export function progressPrinter(session: Session): (line: string) => void {
  const { terminal } = session;
  let last = "";
  let lastShown = 0;
  return (line) => {
    if (line === last) return;
    // The next poll shows skipped updates.
    if (!terminal.liveStatus && Date.now() - lastShown < 1_000) return;
    last = line;
    lastShown = Date.now();
    if (terminal.liveStatus) terminal.status(line);
    else session.note(line);
  };
}
