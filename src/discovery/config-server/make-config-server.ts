import type { Logger } from '../../runtime/output/log.ts';
import type { MeshConfigs } from '../config/snapshots/mesh-configs.ts';
import type { ResourceChange } from '../xds/resource-source.ts';
import { ConfigServer } from './config-server.ts';

export interface ConfigServerParts {
  readonly configs: MeshConfigs;
  readonly rootNamespace: () => string;
  readonly requiresIdentity: boolean;
  readonly push: (change: ResourceChange) => void;
  readonly log: Logger;
}

export function makeConfigServer({ configs, ...serverParts }: ConfigServerParts): ConfigServer {
  const server = new ConfigServer({ ...serverParts, configs: () => configs.snapshot });
  configs.onChanges((_, touchedKeys) => server.pushChanges(touchedKeys));
  return server;
}
