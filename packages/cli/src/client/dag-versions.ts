/** The fields of `/dagVersions` responses that the commands read. */
export interface DagVersion {
  readonly dag_id: string;
  readonly version_number: number;
  readonly bundle_version: string | null;
  readonly created_at: string;
}

export interface FieldChange {
  readonly field: string;
  readonly from: unknown;
  readonly to: unknown;
}

export interface PartsDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly { readonly id: string; readonly fields: readonly FieldChange[] }[];
}

interface Edge {
  readonly from: string;
  readonly to: string;
}

export interface VersionDiff {
  readonly dag_id: string;
  readonly from: DagVersion;
  readonly to: DagVersion;
  readonly is_same_shape: boolean;
  readonly is_same_code: boolean;
  readonly options: readonly FieldChange[];
  readonly tasks: PartsDiff;
  readonly edges: { readonly added: readonly Edge[]; readonly removed: readonly Edge[] };
  readonly groups: PartsDiff;
  readonly maps: PartsDiff;
  readonly source_diff: string;
}
