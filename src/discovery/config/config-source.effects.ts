import { fromPromise } from 'xstate';
import { configSourceMachine, type SourceSummary } from '../../../machines/discovery/config/config-source.machine.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { watchEffect } from './files/watch-actor.ts';
import type { MeshConfigs } from './snapshots/mesh-configs.ts';

export function configSourceWithEffects(configs: MeshConfigs, log: Logger) {
  return configSourceMachine.provide({
    actors: {
      watchSource: watchEffect<{ source: string }>(
        ({ source }, handlers) => configs.watch(source, handlers),
        'source.changed',
        log,
      ),
      readSource: fromPromise<SourceSummary, { source: string; places: string[] }>(async ({ input }) =>
        configs.readSource(input.source, input.places),
      ),
    },
  });
}
