/** How one kind of object is recognised and decoded. */
import type { Decoded, Decoder, FieldError } from '../fields/decode.ts';

export interface MetadataTexts {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface Kind<Name extends string, Spec> {
  readonly kind: Name;
  /** What files call it, where that is not the kind: two groups may have a kind of one name. */
  readonly writtenAs?: string;
  /** Empty for Kubernetes' core group. */
  readonly group: string;
  /** Newest first; all mean the same. */
  readonly versions: readonly string[];
  readonly plural: string;
  /** Objects of a cluster-wide kind have the namespace ''. */
  readonly scope: 'Namespaced' | 'Cluster';
  /**
   * What is decoded: the field `spec`, or, as Kubernetes' own kinds are not all made alike, the object without
   * apiVersion, kind and metadata.
   */
  readonly body: 'spec' | 'object';
  /** Describes the fields of the body: schemas (`src/model/schemas/`) and warnings of fields without effect are derived from it. */
  readonly decoder: Decoder<unknown>;
  /** Decodes and validates; every mistake is said, its path counted from the body. */
  decode(body: unknown, namespace: string): Decoded<Spec>;
  /** What labels and annotations of the object say that its spec does not allow; paths counted from its metadata. */
  metadataErrors?(spec: Spec, metadata: MetadataTexts): readonly FieldError[];
  /** What is allowed and probably not meant, beside fields that their declaration marks as without effect (`effect.ts`). */
  warnings(spec: Spec): readonly FieldError[];
}
