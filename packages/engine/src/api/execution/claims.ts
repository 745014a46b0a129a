/** `/execution/v1/claims`: a worker exchanges the ids that it received for assignments. */
import { z } from "zod";
import { attemptToken } from "../../secret/attempt-token.ts";
import { claimAssignments } from "../../store/execute/assignments.ts";
import { principalOf } from "../server/auth.ts";
import type { Resource } from "../server/context.ts";
import { int } from "../server/fields.ts";
import { Problem } from "../server/problem.ts";
import { ExecutionAccess, executionRoute } from "./execution-access.ts";
import { withGrants } from "./output-grants.ts";

export const claims: Resource = (app, options) => {
  const access = new ExecutionAccess(options);
  app.post(
    "/execution/v1/claims",
    {
      config: executionRoute(options),
      schema: {
        body: z.strictObject({ worker: int(1), ids: z.array(z.uuid()).max(1_000) }),
        response: {
          200: z.object({
            claimed: z.array(z.object({ token: z.string(), assignment: z.any(), is_void: z.boolean() })),
          }),
        },
        tags: ["Task execution"],
      },
    },
    async (request) => {
      const { ids, worker } = request.body;
      await access.requireWorker(request, worker);
      const { assignment } = principalOf(request);
      if (assignment !== undefined && ids.some((id) => id !== assignment))
        throw new Problem(403, "ASSIGNMENT_FOREIGN", "A launch token is valid for its own assignment only");
      const claimed = await claimAssignments(options.database, worker, ids);
      return {
        claimed: claimed.map(({ content, id, is_void }) => ({
          token: attemptToken(options.secretBox, id, worker),
          assignment: withGrants(options.secretBox, id, content),
          is_void,
        })),
      };
    },
  );
};
