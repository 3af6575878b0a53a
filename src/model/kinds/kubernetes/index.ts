/** Kubernetes' own kinds, as a cluster would deliver them (spec/discovery.md §4.3, §5.4). */
import { right } from 'fp-ts/lib/Either.js';
import type { Kind } from '../kind.ts';

/** Its labels are all that is read of a namespace. */
export type Namespace = Record<never, never>;

/** The decoded bodies by kind. */
export interface SpecOfKubernetesKind {
  readonly Namespace: Namespace;
}

export const kubernetesKinds: {
  readonly [K in keyof SpecOfKubernetesKind]: Kind<K, SpecOfKubernetesKind[K]>;
} = {
  Namespace: {
    kind: 'Namespace',
    group: '',
    versions: ['v1'],
    plural: 'namespaces',
    scope: 'Cluster',
    body: 'object',
    decode: () => right({}),
    warnings: () => [],
  },
};
