/** Also used for an endpoint of a ServiceEntry. */
export interface WorkloadEntry {
  /** An IP address, a host name, or `unix:///path`; may be empty if `network` is set. */
  readonly address: string;
  readonly ports?: Readonly<Record<string, number>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly network?: string;
  /** `region/zone/subzone`. */
  readonly locality?: string;
  readonly weight?: number;
  readonly serviceAccount?: string;
}
