import { randomBytes } from "node:crypto";
import { chmod, link, rm, stat, writeFile } from "node:fs/promises";

/**
 * Creates a file that only its owner can read, with all its contents at once, unless it exists. Of two processes that do
 * so at the same time one wins, and both then read the winner's contents.
 */
export async function createOnce(path: string, contents: () => string): Promise<void> {
  const known = await stat(path).catch(() => undefined);
  if (known !== undefined) {
    if (process.platform !== "win32" && (known.mode & 0o077) !== 0) await chmod(path, 0o600);
    return;
  }
  const draft = `${path}.${process.pid}-${randomBytes(4).toString("hex")}`;
  try {
    await writeFile(draft, contents(), { mode: 0o600, flag: "wx" });
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
