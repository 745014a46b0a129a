/** Answers of a person: with a form, whose errors are shown beside their fields, and a rejection. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { Site } from "./support/site.ts";

let site: Site;

beforeAll(async () => {
  site = await Site.open();
}, 120_000);
afterAll(() => site?.close());

interface Approval {
  readonly id: number;
  readonly decision: string | null;
  readonly comment: string | null;
  readonly answer: unknown;
}

async function approvalOf(taskId: string): Promise<Approval> {
  const { approvals } = await site.call<{ approvals: Approval[] }>(
    "GET",
    `/api/v2/approvals?dag_id=publish&task_id=${taskId}`,
  );
  return approvals[0]!;
}

it("answers with a form, and shows the server's problems beside their fields", async () => {
  const page = await site.visit("/approvals");
  await page.getByRole("cell", { name: "Where is the report published?" }).click();
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByRole("button", { name: "Send answer" }).click();
  await details.getByText("Required").waitFor();
  await details.getByLabel("region").selectOption("us");
  await details.getByLabel("copies").fill("3");
  await details.getByLabel("Comment").fill("for Monday");
  await details.getByRole("button", { name: "Send answer" }).click();
  await details.getByText("Answered", { exact: true }).waitFor();
  expect(await approvalOf("target")).toMatchObject({
    decision: "approve",
    answer: { region: "us", copies: 3 },
    comment: "for Monday",
  });
  await page.getByRole("cell", { name: "Where is the report published?" }).waitFor({ state: "detached" });
  await page.context().close();
});

it("shows the message of an author as text, and rejects", async () => {
  const { id } = await approvalOf("publish");
  const page = await site.visit(`/approvals?approval=${id}`);
  const details = page.getByRole("complementary", { name: "Details" });
  await details.getByText("<b>no</b> duplicates").waitFor();
  expect(await details.locator("strong").allTextContents()).toEqual(["checked"]);
  await details.getByRole("button", { name: "Reject" }).click();
  await details.getByText("Rejected", { exact: true }).waitFor();
  expect(await approvalOf("publish")).toMatchObject({ decision: "reject", answer: null });
  await page.context().close();
});

it("logs no error", () => {
  expect(site.complaints).toEqual([]);
});
