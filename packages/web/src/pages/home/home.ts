import type { components } from "../../api/schema.gen.ts";

export type Home = components["schemas"]["UiHome"];
