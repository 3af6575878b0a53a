/** What registries are to their statecharts. */
import { fromCallback, fromPromise } from 'xstate';
import type { ListedRegistry } from '../../../machines/discovery/protocol.ts';
import {
  type GatewayNameInput,
  gatewayNameMachine,
  type NameAnswer,
} from '../../../machines/discovery/registry/gateway-name.machine.ts';
import { gatewayNamesMachine } from '../../../machines/discovery/registry/gateway-names.machine.ts';
import { messageOf } from '../../runtime/errors.ts';
import { type GatewayNames, type ResolveName, resolveByDns } from './gateway-names.ts';
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

/** Says which names gateways have, and resolves them. */
export function gatewayNamesWithEffects(names: GatewayNames, resolve: ResolveName = resolveByDns) {
  return gatewayNamesMachine.provide({
    actors: {
      listNames: fromCallback<{ type: never }, undefined>(({ sendBack }) =>
        names.onWanted((hostnames) => sendBack({ type: 'gateway-names.wanted', hostnames: [...hostnames] })),
      ),
      gatewayName: gatewayNameMachine.provide({
        actors: {
          resolveName: fromPromise<NameAnswer, GatewayNameInput>(({ input, signal }) =>
            resolve(input.hostname, signal),
          ),
        },
        actions: {
          adopt: ({ context: { hostname } }, answer) => {
            if (answer.outcome === 'resolved') names.adopt(hostname, answer.addresses);
          },
        },
      }),
    },
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
