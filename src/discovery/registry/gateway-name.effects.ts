import { fromPromise } from 'xstate';
import {
  type GatewayNameInput,
  gatewayNameMachine,
  type NameResolution,
} from '../../../machines/discovery/registry/gateway-name.machine.ts';
import type { GatewayNames, ResolveName } from './gateway-names.ts';

export function gatewayNameWithEffects(names: GatewayNames, resolve: ResolveName) {
  return gatewayNameMachine.provide({
    actors: {
      resolveName: fromPromise<NameResolution, GatewayNameInput>(({ input, signal }) =>
        resolve(input.hostname, signal),
      ),
    },
    actions: {
      applyAddresses: ({ context: { hostname } }, result) => {
        if (result.outcome === 'resolved') names.setAddresses(hostname, result.addresses);
      },
    },
  });
}
