import { fromCallback, fromPromise } from 'xstate';
import {
  type ConsulCatalogInput,
  type ConsulWatchOrder,
  consulCatalogMachine,
  type ReadOrder,
  type ReadOutcome,
  type SurveyOutcome,
} from '../../../machines/discovery/consul/consul-catalog.machine.ts';
import { messageOf } from '../../runtime/errors.ts';
import { faultLog } from '../../runtime/fences/uncaught.ts';
import { watchFile } from '../../runtime/files/file-watch.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { ConsulDatacenter } from './consul-datacenter.ts';

export function consulCatalogWithEffects(datacenterOf: (name: string) => ConsulDatacenter, log: Logger) {
  const fault = faultLog(log, 'consul.changeFailed');
  return consulCatalogMachine.provide({
    actors: {
      watchCredentials: fromCallback<{ type: never }, ConsulCatalogInput>(({ input, sendBack }) =>
        watchCredentials(datacenterOf(input.datacenter), log, () => sendBack({ type: 'consul-credentials.changed' })),
      ),
      surveyCatalog: fromPromise<SurveyOutcome, ConsulCatalogInput>(({ input, signal }) =>
        datacenterOf(input.datacenter).querySizes(signal),
      ),
      readCatalog: fromPromise<ReadOutcome, ReadOrder>(({ input, signal }) =>
        datacenterOf(input.datacenter).read(input, signal),
      ),
      watchCatalog: fromCallback<{ type: never }, ConsulWatchOrder>(({ input, sendBack }) =>
        datacenterOf(input.datacenter).watch(input, sendBack),
      ),
    },
    actions: {
      applyCatalog: (_, { datacenter }) => {
        try {
          datacenterOf(datacenter).apply();
        } catch (error) {
          fault(error, { datacenter });
        }
      },
      reconnect: (_, { datacenter }) => datacenterOf(datacenter).reconnect(),
      publishHeld: (_, { datacenter, reason }) => datacenterOf(datacenter).setCondition('held', reason),
      publishFailing: (_, { datacenter, reason }) => datacenterOf(datacenter).setCondition('failing', reason),
    },
  });
}

function watchCredentials(datacenter: ConsulDatacenter, log: Logger, onChanged: () => void): () => void {
  const stops = datacenter.credentialFiles.map((file) =>
    watchFile(file, {
      // The watch also reports unchanged files.
      changed: () => datacenter.credentialsChanged() && onChanged(),
      failed: (error) => log.error('files.watchFailed', { reason: messageOf(error) }),
    }),
  );
  return () => {
    for (const stop of stops) stop();
  };
}
