import type { Config } from '../../model/config/config.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { WarningCode } from '../../runtime/errors.ts';
import type { KnownObjects } from './known-objects.ts';
import type { MeshHosts } from './routes/mesh-hosts.ts';

export interface ObjectLocation {
  readonly config: Config;
  /** Field such as `spec.http[0]`. Absent for the whole object. */
  readonly field?: string;
}

/** The configuration is valid, but has no or an unexpected effect. */
export interface ConfigWarning extends Required<ObjectLocation> {
  readonly code: WarningCode;
  readonly message: string;
  readonly other?: ObjectLocation;
}

export interface CheckSources {
  readonly context: PushContext;
  readonly configs: ConfigSet;
  readonly knownObjects: KnownObjects;
  readonly hosts: MeshHosts;
  readonly meshConfig: Config;
}

/** Placeholder for a mesh configuration without a known file. */
export const unlocatedMeshConfig: Config = {
  ...{ kind: 'MeshConfig', apiVersion: 'mesh.istio.io/v1alpha1', name: 'mesh', namespace: '', spec: {} },
  ...{ labels: {}, annotations: {}, resourceVersion: '', creationTimestamp: 0 },
};

/** Yields `undefined` after each object without a warning, so that callers can pause. */
export type ConfigCheck = (sources: CheckSources) => Iterable<ConfigWarning | undefined>;

/** Problems of generated objects are reported by their translation. */
export function isWrittenConfig({ partOrigins, standsFor }: Config): boolean {
  return partOrigins === undefined && standsFor === undefined;
}
