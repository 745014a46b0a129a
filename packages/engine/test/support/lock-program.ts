import { SecretBox } from "../../src/secret/secret-box.ts";
import { ensureToken, lockHome, openHome } from "../../src/service/home.ts";

/** A process that locks a home folder, for tests that kill it. Prints "locked" or the error code, then waits. */
const [path, url] = process.argv.slice(2);
const home = await openHome(path as string);
try {
  const lock = await lockHome(home);
  await lock.describe({ url });
  const token = await ensureToken(home);
  const sealed = (await SecretBox.load(home.secretKey)).seal("secret", "test").toString("base64");
  process.stdout.write(`${JSON.stringify({ state: "locked", token, sealed })}\n`);
  setInterval(() => {}, 1_000);
} catch (error) {
  process.stdout.write(`${JSON.stringify({ state: (error as { code: string }).code })}\n`);
}
