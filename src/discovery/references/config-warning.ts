/** What checks across objects read, and what they report (docs/config-analysis.md). */
import type { Config } from '../../model/config/config.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WarningCode } from '../../runtime/errors.ts';
import type { KnownObjects } from './known-objects.ts';
import type { MeshHosts } from './routes/mesh-hosts.ts';

/** A place in an object, for people. */
export interface ObjectPlace {
  readonly config: Config;
  /** `spec.http[0]`; absent: the object as a whole. */
  readonly field?: string;
}

/** Valid configuration that has no effect, or a different one than it seems to have. */
export interface ConfigWarning extends Required<ObjectPlace> {
  readonly code: WarningCode;
  /** What is wrong, and what to do. */
  readonly message: string;
  /** The other object that it is about, where there is one. */
  readonly other?: ObjectPlace;
}

export interface CheckSources {
  readonly context: PushContext;
  readonly configs: ConfigSet;
  readonly known: KnownObjects;
  readonly hosts: MeshHosts;
  /** The mesh configuration, as an object with a place. */
  readonly meshConfig: Config;
}

/** A mesh configuration of which the file is not known. */
export const unlocatedMeshConfig: Config = {
  ...{ kind: 'MeshConfig', apiVersion: 'mesh.istio.io/v1alpha1', name: 'mesh', namespace: '', spec: {} },
  ...{ labels: {}, annotations: {}, resourceVersion: '', creationTimestamp: 0 },
};

/** Yields `undefined` after each object without a warning, for callers that rest. */
export type ConfigCheck = (sources: CheckSources) => Iterable<ConfigWarning | undefined>;

/** Objects as people wrote them: of what is made of others, the translation reports. */
export function isWritten({ partOrigins, standsFor }: Config): boolean {
  return partOrigins === undefined && standsFor === undefined;
}
