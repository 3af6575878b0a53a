/** Times are milliseconds since the start of the program. */
export interface OtlpSpan {
  /** The same for all spans of one restart, or of one push. */
  readonly trace: string;
  /** Unique in its trace; empty for the root. */
  readonly key: string;
  readonly parent?: string;
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly error?: string;
}

export type AttributeValue = string | number | boolean;
