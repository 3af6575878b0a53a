import { fromCallback, fromPromise } from 'xstate';
import {
  type ConfigReading,
  configControllerMachine,
} from '../../../machines/discovery/config/config-controller.machine.ts';
import type { SourcesInvalid, SourcesList, SourcesListed } from '../../../machines/discovery/protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { configSourceWithEffects } from './config-source.effects.ts';
import type { MeshConfigs } from './snapshots/mesh-configs.ts';
import type { configSources } from './sources/config-sources.ts';

export interface ConfigControllerEffects {
  readonly configs: MeshConfigs;
  /** @throws Error if the sources cannot be read */
  readonly listSources: () => ReturnType<typeof configSources>;
  readonly log: Logger;
}

export function configControllerWithEffects({ configs, listSources, log }: ConfigControllerEffects) {
  let loggedProblems: ReadonlySet<string> = new Set();
  const list = (): SourcesListed | SourcesInvalid => {
    try {
      const { sources, ignoredAddresses } = listSources();
      for (const [source, reason] of ignoredAddresses) {
        if (!loggedProblems.has(source)) log.warn('option.configSourceIgnored', { source, reason });
      }
      loggedProblems = new Set(ignoredAddresses.keys());
      return { type: 'sources.listed', sources: [...sources] };
    } catch (error) {
      return { type: 'sources.invalid', reason: messageOf(error) };
    }
  };
  return configControllerMachine.provide({
    actors: {
      configSource: configSourceWithEffects(configs, log.scope('config-controller')),
      listSources: fromCallback<SourcesList, undefined>(({ sendBack, receive }) => {
        receive(() => sendBack(list()));
      }),
      mergeSources: fromPromise<ConfigReading, { sources: string[]; known: string[] }>(({ input, signal }) =>
        configs.join(input.sources, input.known, signal),
      ),
    },
  });
}
