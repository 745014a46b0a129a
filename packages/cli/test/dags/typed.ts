import { dag, type StandardSchemaV1 } from "tradewind";

/** A hand-written validator: this folder is copied to a place without packages. */
const params: StandardSchemaV1<{ region?: string; limit: number }> = {
  "~standard": {
    version: 1,
    vendor: "manual",
    validate: (value) => ({ value: value as { region?: string; limit: number } }),
    jsonSchema: {
      input: () => ({
        type: "object",
        properties: { region: { enum: ["eu", "us"], default: "eu" }, limit: { type: "integer" } },
        required: ["limit"],
      }),
    },
  },
};

export default dag("typed", { params }, (d) => {
  d.task("echo", (_, ctx) => `${ctx.params.region} ${ctx.params.limit}`);
});
