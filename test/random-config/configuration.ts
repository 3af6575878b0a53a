/** A random mesh: objects that name each other's hosts, ports, subsets and gateways. */
import { Draw } from './draw.ts';
import { gatewayApi } from './gateway-api.ts';
import {
  authorizationPolicy,
  envoyFilter,
  gateway,
  peerAuthentication,
  requestAuthentication,
  telemetry,
} from './policies.ts';
import { delegate, virtualService } from './routes.ts';
import { destinationRule, serviceEntry, sidecar } from './services.ts';
import { namespaces, type World } from './values.ts';

/** An object as a person would write it. */
export interface WrittenObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: object;
}

type Maker = readonly [
  kind: string,
  group: string,
  least: number,
  most: number,
  make: (world: World, index: number) => object,
];

const networking = 'networking.istio.io/v1';
const makers: readonly Maker[] = [
  ['ServiceEntry', networking, 1, 4, serviceEntry],
  ['Gateway', networking, 0, 2, gateway],
  ['VirtualService', networking, 1, 4, virtualService],
  ['DestinationRule', networking, 0, 3, destinationRule],
  ['Sidecar', networking, 0, 1, sidecar],
  ['PeerAuthentication', 'security.istio.io/v1', 0, 1, peerAuthentication],
  ['AuthorizationPolicy', 'security.istio.io/v1', 0, 2, authorizationPolicy],
  ['RequestAuthentication', 'security.istio.io/v1', 0, 1, requestAuthentication],
  ['Telemetry', 'telemetry.istio.io/v1', 0, 1, telemetry],
  ['EnvoyFilter', 'networking.istio.io/v1alpha3', 0, 1, envoyFilter],
];

/** The same seed in the same surroundings gives the same mesh. */
export function randomConfiguration(seed: number, around: Omit<World, 'draw'>): readonly WrittenObject[] {
  const draw = new Draw(seed);
  const world: World = { ...around, draw };
  const objects = makers.flatMap(([kind, apiVersion, least, most, make]) =>
    draw.list(least, most, (index): WrittenObject => {
      // Gateways are named: VirtualServices bind to them.
      const name = kind === 'Gateway' && index === 0 ? 'front' : `${kind.toLowerCase()}-${index}`;
      const namespace = kind === 'Gateway' || draw.chance(0.7) ? 'shop' : draw.pick(namespaces);
      return { apiVersion, kind, metadata: { name, namespace }, spec: make(world, index) };
    }),
  );
  const delegated = draw.chance(0.15) ? delegation(world) : [];
  // Drawn apart, so that the rest of a seed's mesh is what it was before there were these.
  const kubernetes = gatewayApi({ ...world, draw: new Draw(seed + 2_000_003) });
  return [...objects, ...delegated, ...kubernetes];
}

function delegation(world: World): readonly WrittenObject[] {
  const made = (name: string, spec: object): WrittenObject => ({
    apiVersion: networking,
    kind: 'VirtualService',
    metadata: { name, namespace: 'shop' },
    spec,
  });
  const below = { match: [{ uri: { prefix: '/deep' } }], delegate: { name: 'below', namespace: 'shop' } };
  return [made('root', { hosts: ['ads.stage.test'], http: [below] }), made('below', delegate(world))];
}
