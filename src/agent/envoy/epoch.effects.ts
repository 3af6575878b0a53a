import { rmSync } from 'node:fs';
import { epochMachine } from '../../../machines/agent/envoy/epoch.machine.ts';
import type { ActorImplementations } from '../../runtime/actors/effects-of.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { type DrainEnvironment, drainListeners } from '../admin/drain-listeners.ts';
import { liveProbe, type ProbeEnvironment } from '../admin/live-probe.ts';
import { isMarkedInitializing } from './base-ids/shared-memory.ts';
import { type EnvoyProcessEnvironment, envoyProcess } from './envoy-process.ts';
import { outOfMemoryCounter } from './out-of-memory.ts';

export interface EpochEffects extends ActorImplementations<typeof epochMachine, 'prepare'> {
  readonly process: Omit<EnvoyProcessEnvironment, 'outOfMemoryKills'>;
  readonly probe: Omit<ProbeEnvironment, 'isMarkedInitializing'>;
  readonly drain: DrainEnvironment;
  /** Whether the agent generated the configuration file, and therefore removes it when the epoch ends. */
  readonly ownsConfigFile: boolean;
  readonly log: Logger;
}

export function epochWithEffects({ prepare, process, probe, drain, ownsConfigFile, log }: EpochEffects) {
  return epochMachine.provide({
    actors: {
      prepare,
      process: envoyProcess({ ...process, outOfMemoryKills: outOfMemoryCounter() }),
      probe: liveProbe({ ...probe, isMarkedInitializing }),
      drainListeners: drainListeners(drain),
    },
    actions: {
      removeConfigFile: ({ context }) => {
        if (ownsConfigFile) removeQuietly(context.configFile, log);
      },
    },
  });
}

function removeQuietly(file: string, log: Logger): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    log.warn('file.notRemoved', { file, reason: messageOf(error) });
  }
}
