import { expect, it } from "vitest";
import { readConfig } from "./config.ts";

const read = (text: string) => readConfig({ env: { TRADEWIND_ON_FAILURE: text } }).onFailure;

it("reads webhooks, mails and signals from TRADEWIND_ON_FAILURE", () => {
  expect(
    read(
      "webhook:https://hooks.example.com/a,b?x=1, email:ops@example.com?connection=mail,signal:run.failed,webhook:pager",
    ),
  ).toEqual([
    { kind: "webhook", to: "https://hooks.example.com/a,b?x=1" },
    { kind: "email", to: ["ops@example.com"], connection: "mail" },
    { kind: "signal", namespace: "default", key: "run.failed" },
    { kind: "webhook", to: "pager" },
  ]);
  expect(read(" ")).toEqual([]);
});

it.each([
  "pager",
  "webhook:",
  "webhook:ftp://hunter2",
  "email:ops@example.com",
  "email:ops?connection=mail",
  "signal:late.*",
])("rejects %s with what is expected, and without the value of a webhook", (text) => {
  expect(() => read(text)).toThrow(/^TRADEWIND_ON_FAILURE must be webhook:<address or connection>, email:/);
  expect(() => read(text)).not.toThrow(/hunter2/);
});
