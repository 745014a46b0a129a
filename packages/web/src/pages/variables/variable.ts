import type { components } from "../../api/schema.gen.ts";

export type Variable = components["schemas"]["VariableResponse"];

export const VARIABLES = "/api/v2/variables";
