import { fromCallback } from 'xstate';
import type { ListedRegistry } from '../../../machines/discovery/protocol.ts';
import { registryMachine } from '../../../machines/discovery/registry/registry.machine.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { MeshRegistries } from './mesh-registries.ts';

export function registryWithEffects(registries: MeshRegistries) {
  return registryMachine.provide({ actors: { runRegistry: runRegistry(registries) } });
}

function runRegistry(registries: MeshRegistries) {
  return fromCallback<{ type: never }, ListedRegistry>(({ input: { registry }, sendBack }) => {
    const onFailed = (error: unknown): void => {
      sendBack({ type: 'registry.failed', registry, reason: messageOf(error) });
    };
    try {
      return registries.run(registry, {
        onSynced: () => sendBack({ type: 'registry.synced', registry }),
        onChanged: () => sendBack({ type: 'registry.changed', registry }),
        onFailed: onFailed,
      });
    } catch (error) {
      onFailed(error);
      return () => {};
    }
  });
}
