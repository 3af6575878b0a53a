import { fromPromise } from 'xstate';
import {
  type MeshConfigInput,
  meshConfigMachine,
  type SettingsReading,
} from '../../../machines/discovery/config/mesh-config.machine.ts';
import type { SettingsName } from '../../../machines/discovery/protocol.ts';
import { watchFile } from '../../runtime/files/file-watch.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { SettingsFiles } from './files/settings-files.ts';
import { watchEffect } from './files/watch-actor.ts';

export interface SettingsOfCluster {
  readonly read: (name: SettingsName) => Promise<Parameters<SettingsFiles['readTexts']>[1]>;
  readonly watch: (onChanged: () => void) => () => void;
}

export interface MeshConfigEffects {
  readonly settings: SettingsFiles;
  /** Used if there is no file. `undefined` if no cluster is configured. */
  readonly cluster: SettingsOfCluster | undefined;
  readonly reportAdopted: () => void;
  readonly log: Logger;
}

export function meshConfigWithEffects({ settings, cluster, reportAdopted, log }: MeshConfigEffects) {
  return meshConfigMachine.provide({
    actors: {
      watchFile: watchEffect<{ file: string }>(
        ({ file }, handlers) => {
          const stops = [watchFile(file, handlers), cluster?.watch(() => handlers.changed('the cluster'))];
          return () => {
            for (const stop of stops) stop?.();
          };
        },
        'files.changed',
        log,
      ),
      readSettings: fromPromise<SettingsReading, Pick<MeshConfigInput, 'name' | 'file'>>(async ({ input }) => {
        const { name, file } = input;
        const settingsReading = settings.read(name, file);
        if (settingsReading.outcome !== 'absent' || cluster === undefined) return settingsReading;
        return settings.readTexts(name, await cluster.read(name));
      }),
    },
    actions: {
      applySettings: ({ context }, { version }) => {
        settings.activate(context.name, version);
        reportAdopted();
      },
    },
  });
}
