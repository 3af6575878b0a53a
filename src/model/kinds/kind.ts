import type { Decoded, Decoder, FieldError } from '../fields/decode.ts';

export interface MetadataTexts {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Kind<Name extends string, Spec> {
  readonly kind: Name;
  /** Set if two API groups have a kind of this name. */
  readonly writtenAs?: string;
  /** Empty for Kubernetes' core group. */
  readonly group: string;
  /** Newest first; all versions are equivalent. */
  readonly versions: readonly string[];
  readonly plural: string;
  /** Objects of cluster-wide kinds have an empty namespace. */
  readonly scope: 'Namespaced' | 'Cluster';
  /** `object` is used for Kubernetes' own kinds: the object without apiVersion, kind and metadata. */
  readonly body: 'spec' | 'object';
  /** Schemas (`src/model/schemas/`) and warnings about fields without effect are derived from the decoder. */
  readonly decoder: Decoder<unknown>;
  /** Paths of errors are relative to the body. */
  decode(body: unknown, namespace: string): Decoded<Spec>;
  /** Errors of labels and annotations that are invalid with this spec; paths are relative to the metadata. */
  metadataErrors?(spec: Spec, metadata: MetadataTexts): readonly FieldError[];
  warnings(spec: Spec): readonly FieldError[];
}
