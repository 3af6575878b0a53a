/** What registries are to their statecharts. */
import { fromCallback } from 'xstate';
import type { ListedRegistry } from '../../../machines/discovery/protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { MeshRegistries } from './mesh-registries.ts';
import type { RegistryOffers } from './registry.ts';

const none: RegistryOffers = (offered) => {
  offered([]);
  return () => {};
};

/**
 * Says which registries there are, and when names of gateways resolve otherwise.
 *
 * @param offers beside those that there are anyway
 */
export function listRegistries(
  state: { onGatewaysResolved(listener: () => void): () => void; readonly registries: MeshRegistries },
  offers: RegistryOffers = none,
) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    const forget = state.onGatewaysResolved(() => sendBack({ type: 'gateways.resolved' }));
    const withdraw = offers((given) => {
      sendBack({ type: 'registries.listed', registries: [...state.registries.offer(given)] });
    });
    return () => {
      withdraw();
      forget();
      state.registries.stop();
    };
  });
}

/** Runs a registry, and says what becomes of it. */
export function runRegistry(registries: MeshRegistries) {
  return fromCallback<{ type: never }, ListedRegistry>(({ input: { registry }, sendBack }) => {
    const failed = (error: unknown): void => {
      sendBack({ type: 'registry.failed', registry, reason: messageOf(error) });
    };
    try {
      return registries.run(registry, {
        synced: () => sendBack({ type: 'registry.synced', registry }),
        changed: () => sendBack({ type: 'registry.changed', registry }),
        failed,
      });
    } catch (error) {
      failed(error);
      return () => {};
    }
  });
}
