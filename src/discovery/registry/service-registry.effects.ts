import { fromCallback, fromPromise } from 'xstate';
import { serviceRegistryMachine } from '../../../machines/discovery/registry/service-registry.machine.ts';
import type { ServicesOrder, ServicesReading } from '../../../machines/discovery/registry/service-registry.setup.ts';
import { gatewayNamesWithEffects } from './gateway-names.effects.ts';
import type { MeshRegistries } from './mesh-registries.ts';
import { registryWithEffects } from './registry.effects.ts';
import type { RegistryOffers } from './registry.ts';

const noOffers: RegistryOffers = (onOffers) => {
  onOffers([]);
  return () => {};
};

/** `MeshState` implements this. */
export interface RegistryState {
  readonly registries: MeshRegistries;
  onGatewaysResolved(listener: () => void): () => void;
  /** @returns the changes since the last computation */
  computeServicesInTurns(
    changes: ServicesOrder['changes'],
    registries: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<ServicesReading>;
}

export function serviceRegistryWithEffects(state: RegistryState, offers?: RegistryOffers) {
  return serviceRegistryMachine.provide({
    actors: {
      listRegistries: listRegistries(state, offers),
      gatewayNames: gatewayNamesWithEffects(state.registries.gatewayNames),
      registry: registryWithEffects(state.registries),
      computeServices: fromPromise<ServicesReading, ServicesOrder>(({ input, signal }) =>
        state.computeServicesInTurns(input.changes, input.registries ?? undefined, signal),
      ),
    },
  });
}

/** Also reports changes of the watched cluster and of gateway addresses. */
function listRegistries(state: RegistryState, offers: RegistryOffers = noOffers) {
  return fromCallback<{ type: never }, undefined>(({ sendBack }) => {
    let isStopped = false;
    state.registries.objects.onClusterChanged(() => {
      if (!isStopped) sendBack({ type: 'registry.changed', registry: state.registries.clusterRegistryName });
    });
    const stopListening = state.onGatewaysResolved(() => sendBack({ type: 'gateways.resolved' }));
    const stopOffers = offers((listedOffers) => {
      sendBack({ type: 'registries.listed', registries: [...state.registries.offer(listedOffers)] });
    });
    return () => {
      isStopped = true;
      stopOffers();
      stopListening();
      state.registries.stop();
    };
  });
}
