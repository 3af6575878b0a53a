import { fromCallback } from 'xstate';
import { gatewayNamesMachine } from '../../../machines/discovery/registry/gateway-names.machine.ts';
import { gatewayNameWithEffects } from './gateway-name.effects.ts';
import { type GatewayNames, type ResolveName, resolveByDns } from './gateway-names.ts';

export function gatewayNamesWithEffects(names: GatewayNames, resolve: ResolveName = resolveByDns) {
  return gatewayNamesMachine.provide({
    actors: {
      listNames: fromCallback<{ type: never }, undefined>(({ sendBack }) =>
        names.onTrackedChanged((hostnames) => sendBack({ type: 'gateway-names.listed', hostnames: [...hostnames] })),
      ),
      gatewayName: gatewayNameWithEffects(names, resolve),
    },
  });
}
