/** A random mesh of objects that name each other's hosts, ports, subsets and gateways. */
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
import { type MeshVocabulary, namespaces, type WrittenObject } from './values.ts';

type Maker = readonly [
  kind: string,
  group: string,
  least: number,
  most: number,
  make: (world: MeshVocabulary, index: number) => object,
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

/** Equal seeds and contexts give equal meshes. */
export function randomConfiguration(seed: number, context: Omit<MeshVocabulary, 'draw'>): readonly WrittenObject[] {
  const draw = new Draw(seed);
  const world: MeshVocabulary = { ...context, draw };
  const objects = makers.flatMap(([kind, apiVersion, min, max, createSpec]) =>
    draw.list(min, max, (index): WrittenObject => {
      // Gateways have fixed names, because VirtualServices bind to them.
      const name = kind === 'Gateway' && index === 0 ? 'front' : `${kind.toLowerCase()}-${index}`;
      const namespace = kind === 'Gateway' || draw.chance(0.7) ? 'shop' : draw.pick(namespaces);
      return { apiVersion, kind, metadata: { name, namespace }, spec: createSpec(world, index) };
    }),
  );
  const delegated = draw.chance(0.15) ? delegation(world) : [];
  // A separate generator keeps the rest of a seed's mesh stable.
  const kubernetes = gatewayApi({ ...world, draw: new Draw(seed + 2_000_003) });
  return [...withOtherCase([...objects, ...delegated], new Draw(seed + 3_000_017)), ...kubernetes];
}

const fieldsOfHosts: ReadonlySet<string> = new Set(['host', 'hosts', 'sniHosts']);

/** Changes the case of some hosts, which does not change their meaning. Uses a separate generator, too. */
function withOtherCase(objects: readonly WrittenObject[], draw: Draw): readonly WrittenObject[] {
  const spelling = (text: string): string => {
    if (!draw.chance(0.1)) return text;
    const at = text.indexOf('/') + 1;
    return (
      text.slice(0, at) +
      text.slice(at).replace(/[a-z]/g, (letter) => (draw.chance(0.3) ? letter.toUpperCase() : letter))
    );
  };
  const withCase = (value: unknown, isHost: boolean): unknown => {
    if (typeof value === 'string') return isHost ? spelling(value) : value;
    if (Array.isArray(value)) return value.map((item) => withCase(item, isHost));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, field]) => [key, withCase(field, fieldsOfHosts.has(key))]),
    );
  };
  return objects.map((object) =>
    object.apiVersion === networking ? { ...object, spec: withCase(object.spec, false) as object } : object,
  );
}

function delegation(world: MeshVocabulary): readonly WrittenObject[] {
  const createVirtualService = (name: string, spec: object): WrittenObject => ({
    apiVersion: networking,
    kind: 'VirtualService',
    metadata: { name, namespace: 'shop' },
    spec,
  });
  const delegateRule = { match: [{ uri: { prefix: '/deep' } }], delegate: { name: 'below', namespace: 'shop' } };
  return [
    createVirtualService('root', { hosts: ['ads.stage.test'], http: [delegateRule] }),
    createVirtualService('below', delegate(world)),
  ];
}
