/**
 * Where bundler children write the modules they import: a temporary folder that is removed with its owner. A killed owner
 * cannot remove it, so the next one does. Its name contains the owner and the machine: in a shared temporary folder, the
 * processes of other machines are not visible and must not be mistaken for dead.
 */
import { createHash } from "node:crypto";
import { chown, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { processName } from "../service/process-identity.ts";
import type { ProcessUser } from "../service/process-user.ts";

const PREFIX = `tradewind-bundler-${createHash("sha256").update(hostname()).digest("hex").slice(0, 8)}-`;

/** Creates a folder for children of this account, and removes the folders of dead processes. */
export async function makeScratchFolder(user?: ProcessUser | null): Promise<string> {
  const parent = await realpath(tmpdir());
  await removeOrphans(parent);
  const folder = await mkdtemp(join(parent, `${PREFIX}${processName(process.pid) ?? process.pid}-`));
  if (user) await chown(folder, user.uid, user.gid);
  return folder;
}

async function removeOrphans(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [] as string[])) {
    if (!name.startsWith(PREFIX)) continue;
    const owner = /^(\d+)-[0-9a-f]{16}(?=-)/.exec(name.slice(PREFIX.length));
    if (owner === null || processName(Number(owner[1])) === owner[0]) continue;
    // The folder of another account cannot be removed, and need not be.
    await rm(join(parent, name), { recursive: true, force: true }).catch(() => {});
  }
}
