import { describe, expect, test } from "vitest";
import { RecordingHost, taskCall } from "../../test/attempt-call.ts";
import { dag, email, sendSignal, signal, webhook } from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

const pager = { kind: "webhook", to: "pager" } as const;
const mail = { kind: "email", to: ["ops@example.com"], connection: "mail" } as const;
const failed = { kind: "signal", namespace: "default", key: "failed" } as const;

describe("notices in callback options", () => {
  test("are in the manifest of the DAG, its groups and its tasks, next to the flags for functions", () => {
    const manifest = dag(
      "x",
      {
        onFailure: [webhook("pager"), () => {}, email({ to: "ops@example.com", connection: "mail" })],
        onSuccess: sendSignal(signal("failed")),
        defaults: { onFailure: webhook("pager") },
      },
      (d) => {
        d.task("plain", { onRetry: [sendSignal(signal("failed")), webhook("pager")] }, () => 1);
        d.task("own", { onFailure: () => {} }, () => 1);
        d.group("g", { onFailure: webhook("pager") }, (g) => void g.task("t", { onFailure: [] }, () => 1));
      },
    )[PROGRAM].describe();
    expect(manifest).toMatchObject({
      callbacks: { success: false, failure: true },
      notices: { success: [failed], failure: [pager, mail] },
    });
    const [plain, own, inner] = manifest.tasks;
    expect(plain?.callbacks).toEqual({ success: false, failure: false, retry: false });
    expect(plain?.notices).toEqual({ failure: [pager], retry: [failed, pager] });
    expect(own).toMatchObject({ callbacks: { failure: true } });
    expect(own).not.toHaveProperty("notices");
    expect(inner).not.toHaveProperty("notices");
    expect(manifest.groups[0]).toMatchObject({ notices: { failure: [pager] } });
    expect(manifest.groups[0]).not.toHaveProperty("callbacks");
  });

  test("keep the order of functions in a list, and call all of them if one throws", async () => {
    const seen: string[] = [];
    const throws = (name: string) => () => {
      seen.push(name);
      throw new Error(`${name} failed`);
    };
    const onFailure = [throws("first"), webhook("pager"), () => void seen.push("second"), throws("third")];
    const defined = dag("x", (d) => void d.task("t", { onFailure }, () => 1));
    const { conf, run } = taskCall(defined, "t");
    const call = { run, conf, tryNumber: 1, error: null, host: new RecordingHost() };
    const outcome = await defined[PROGRAM].callback({ ...call, taskId: "t", event: "failure" });
    expect(seen).toEqual(["first", "second", "third"]);
    expect(outcome).toMatchObject({ ok: false, error: { message: "first failed; third failed" } });
  });

  test.each([
    ["a text", "pager"],
    ["nothing in a list", [undefined]],
    ["a list in a list", [[() => {}]]],
    ["null", null],
  ])("reject %s", (_, value) => {
    expect(() => dag("x", { onFailure: value as never }, (d) => void d.task("t", () => 1))).toThrow(
      'dag "x": onFailure takes a function, webhook(), email(), sendSignal() or a list of them',
    );
  });
});
