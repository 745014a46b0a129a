import { SecretBox } from "../../src/secret/secret-box.ts";
import { ensureToken, lockHome, openHome } from "../../src/service/home.ts";

/** A process that takes a home, for tests that kill it. Says "locked" or the error's code, then waits for its end. */
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
