import { expect, it } from "vitest";
import { answerCommand, stateText } from "./approval.ts";

it("names what has become of an approval", () => {
  const answered = { state: "answered", has_form: false } as const;
  expect(stateText({ ...answered, decision: "approve" })).toBe("Approved");
  expect(stateText({ ...answered, has_form: true, decision: "approve" })).toBe("Answered");
  expect(stateText({ ...answered, has_form: true, decision: "reject" })).toBe("Rejected");
  // The default answer of a timeout is an approval, without a user.
  expect(stateText({ state: "timed_out", has_form: true, decision: "approve" })).toBe("Timed out");
});

it("writes the answer as a command", () => {
  expect(answerCommand(7, { decision: "approve", comment: "it's fine" })).toBe(
    `tradewind approvals answer 7 --approve --comment 'it'\\''s fine'`,
  );
  expect(answerCommand(7, { decision: "approve", answer: { copies: 3 } })).toBe(
    `tradewind approvals answer 7 --answer '{"copies":3}'`,
  );
  expect(answerCommand(7, { decision: "reject" })).toBe("tradewind approvals answer 7 --reject");
});
