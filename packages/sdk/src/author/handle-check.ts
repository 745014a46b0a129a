/** Checks the handles that a builder receives: their DAG, the map they are used in, and the tasks they stand for. */

import { DagDefinitionError, show } from "../check/errors.ts";
import type { InputSource, MapManifest, MapSource } from "../manifest.ts";
import type { Draft } from "./draft.ts";
import { mapOf, type Output, ownerOf, sourceOf, type Upstream } from "./handle.ts";
import { mapLabel } from "./map-label.ts";
import { mapSource } from "./mapping.ts";

export class HandleCheck {
  readonly #draft: Draft;
  /** The map to which the builder adds its tasks. */
  readonly #map: string | null;

  constructor(draft: Draft, map: string | null) {
    this.#draft = draft;
    this.#map = map;
  }

  inputs(given: unknown, where: string): Record<string, InputSource> {
    if (given === undefined) return {};
    if (typeof given !== "object" || given === null || Array.isArray(given)) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${where}: inputs must be an object of handles, got ${show(given)}`,
      );
    }
    return Object.fromEntries(
      Object.entries(given).map(([name, handle]) => {
        this.#own(handle, `${where}: input "${name}"`);
        const source = sourceOf(handle);
        if (source) return [name, source];
        throw new DagDefinitionError(
          "TW_BAD_HANDLE",
          `${where}: input "${name}" is a group, which has no output; use after`,
        );
      }),
    );
  }

  /**
   * `after` a group means after the tasks in it that have no downstream inside the group. Teardowns do not count:
   * downstream tasks do not wait for them.
   */
  upstreamIds(after: unknown, where: string): string[] {
    if (after === undefined) return [];
    return (Array.isArray(after) ? after : [after]).flatMap((given) => {
      const handle = this.#own(given, `${where}: after`);
      const source = sourceOf(handle);
      if (source) return this.tasksOf(source);
      if (handle.kind === "output") return [];
      const all = this.#draft.members(handle.groupId);
      const work = all.filter(({ role }) => role !== "teardown");
      const members = work.length > 0 ? work : all;
      const followed = new Set(members.flatMap((task) => [...task.upstream]));
      return members.map((task) => task.taskId).filter((id) => !followed.has(id));
    });
  }

  /** The manifest of a map next to the tasks of the builder. */
  map(
    options: { readonly over?: unknown; readonly label?: unknown },
    {
      limit,
      mapId,
      where,
    }: { readonly limit: number | null; readonly mapId: string; readonly where: string },
  ): MapManifest {
    const check = (handle: unknown) => void this.#own(handle, `${where}: over`);
    const over = mapSource(options.over, { check, where });
    const label = mapLabel(options.label, where);
    return { mapId, parent: this.#map, over, limit, ...(label && { label }) };
  }

  /** The tasks that must have ended before an input has its value. */
  tasksOf(input: InputSource): string[] {
    if ("taskId" in input) return [input.taskId];
    const tasks = (over: MapSource): string[] => {
      if (over.kind === "output") return [over.taskId];
      if (over.kind === "item") return this.tasksOf({ item: over.mapId });
      return over.kind === "list" ? [] : over.of.flatMap(tasks);
    };
    return tasks(this.#draft.maps.get(input.item)!.over);
  }

  /** The id of the setup of a teardown. */
  setup(handle: unknown, where: string): string {
    this.#own(handle, `${where}: of`);
    const source = sourceOf(handle);
    const task = source && "taskId" in source ? this.#draft.tasks.get(source.taskId) : undefined;
    if (task?.role === "setup") return task.taskId;
    throw new DagDefinitionError(
      "TW_BAD_OPTION",
      `${where}: of must be the handle that d.setup returned, got ${task ? show(task.taskId) : show(handle)}`,
    );
  }

  /** The task id of a handle in a condition. */
  ownTask(handle: unknown, where: string): string {
    const { taskId } = this.#own(handle, `${where}: on`) as Output<unknown>;
    if ((this.#draft.tasks.get(taskId)?.map ?? null) === null) return taskId;
    throw new DagDefinitionError(
      "TW_BAD_OPTION",
      `${where}: on waits for "${taskId}", which runs once per item; wait for a task downstream of it`,
    );
  }

  #own(handle: unknown, where: string): Upstream {
    const owner = ownerOf(handle);
    if (owner === this.#draft && !this.#isInside(mapOf(handle))) {
      throw new DagDefinitionError(
        "TW_MAP_HANDLE",
        `${where}: "${(handle as Output<unknown>).taskId}" is of one item of the map "${mapOf(handle)}"; outside of the map, use the result of d.mapGroup, which has the list of all items`,
      );
    }
    if (owner === this.#draft) return handle as Upstream;
    if (owner !== undefined) {
      throw new DagDefinitionError(
        "TW_FOREIGN_HANDLE",
        `${where}: the handle belongs to dag ${show((handle as Upstream).dagId)}; a task can only depend on tasks of its own DAG`,
      );
    }
    throw new DagDefinitionError(
      "TW_BAD_HANDLE",
      `${where}: ${show(handle)} is not a handle; pass the value that d.task, d.operator or d.group returned`,
    );
  }

  /** Returns whether this builder adds its tasks to that map, or to a map inside it. */
  #isInside(map: string | null): boolean {
    for (let own = this.#map; map !== null; own = this.#draft.maps.get(own)?.parent ?? null) {
      if (own === map) return true;
      if (own === null) return false;
    }
    return true;
  }
}
