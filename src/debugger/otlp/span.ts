/** A span as OpenTelemetry has it, before it is written in one of its encodings. Times are milliseconds since the program's start. */
export interface Span {
  /** All spans of one restart, or of one push, have the same. */
  readonly trace: string;
  /** Unique in its trace; the root's is empty. */
  readonly key: string;
  readonly parent?: string;
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  /** What went wrong; absent where nothing did. */
  readonly error?: string;
}

export type AttributeValue = string | number | boolean;
