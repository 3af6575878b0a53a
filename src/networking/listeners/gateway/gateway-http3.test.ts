import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { SocketAddress_Protocol } from '../../../gen/envoy/config/core/v3/address_pb.ts';
import type { Listener } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import {
  HttpConnectionManager_CodecType,
  HttpConnectionManagerSchema,
} from '../../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { QuicDownstreamTransportSchema } from '../../../gen/envoy/extensions/transport_sockets/quic/v3/quic_transport_pb.ts';
import { http3Offer } from '../../gateway/http3.ts';
import { mergeGateways } from '../../gateway/merge-gateways.ts';
import { buildRoutes } from '../../routes/build.ts';
import { buildListeners } from '../build.ts';

const door: GivenNode = { type: 'router', namespace: 'shop', labels: { app: 'door' } };

const service = (ports: string, slicePorts: string) => `
apiVersion: v1
kind: Service
metadata: { name: door, namespace: shop }
spec: { clusterIP: 10.1.0.1, ports: [${ports}] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: door-1, namespace: shop, labels: { kubernetes.io/service-name: door } }
addressType: IPv4
ports: [${slicePorts}]
endpoints: [{ addresses: [10.9.9.9] }]
---`;
const tcpPort = '{ name: https, port: 443, targetPort: 8443 }';
const udpPort = '{ name: quic, port: 443, targetPort: 9443, protocol: UDP }';
const tcpAndUdpService = service(
  `${udpPort}, ${tcpPort}`,
  '{ name: https, port: 8443 }, { name: quic, port: 9443, protocol: UDP }',
);
const overTcp = service(tcpPort, '{ name: https, port: 8443 }');

const gateway = (...servers: string[]) => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: door, namespace: shop }
spec: { selector: { app: door }, servers: [${servers.join(', ')}] }
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: web, namespace: shop }
spec: { hosts: ["*"], gateways: [door], http: [{ directResponse: { status: 204 } }] }
---`;
const server = (name: string, host: string, tls: string) =>
  `{ port: { number: 443, name: ${name}, protocol: HTTPS }, hosts: ["${host}"], tls: { ${tls} } }`;
const simple = server('all', '*.test', 'mode: SIMPLE, credentialName: all');
const mutual = server('strict', 'strict.test', 'mode: MUTUAL, credentialName: strict');
const http3Enabled = { features: { quicListeners: true } };

function built(yaml: string, options: Parameters<typeof givenMesh>[1] = http3Enabled, node = door) {
  const { context } = givenMesh(yaml, options);
  const shape = givenShape(node, context);
  const listeners = buildListeners(shape, context).map(({ message }) => message as Listener);
  const routes = [...mergeGateways(shape, context).routes.keys()].flatMap((name) =>
    buildRoutes(shape, context, [name]).map(({ message }) => message as RouteConfiguration),
  );
  return { context, shape, listeners, routes, names: listeners.map(({ name }) => name) };
}

const managerOf = ({ filters }: Listener['filterChains'][number]) => {
  const last = filters.at(-1)!.configType;
  return anyUnpack(last.case === 'typedConfig' ? last.value : ({} as never), HttpConnectionManagerSchema)!;
};

it('HTTPS servers are served over QUIC on the UDP port of their Service, and advertise the port that clients use', () => {
  const { listeners, names, routes } = built(tcpAndUdpService + gateway(simple));
  expect(names).toEqual(['0.0.0.0_8443', 'udp_0.0.0.0_9443']);
  const [tcp, quic] = listeners;
  expect(tcp!.udpListenerConfig).toBeUndefined();
  expect(quic!.address!.address).toMatchObject({
    case: 'socketAddress',
    value: { protocol: SocketAddress_Protocol.UDP, address: '0.0.0.0', portSpecifier: { value: 9443 } },
  });
  expect(quic!.udpListenerConfig).toMatchObject({ quicOptions: {}, downstreamSocketConfig: {} });
  const [chain] = quic!.filterChains;
  expect(chain!.filterChainMatch!.serverNames).toEqual(['*.test']);
  const { name, configType } = chain!.transportSocket!;
  expect(name).toBe('envoy.transport_sockets.quic');
  const { downstreamTlsContext } = anyUnpack(configType.value!, QuicDownstreamTransportSchema)!;
  expect(downstreamTlsContext!.commonTlsContext).toMatchObject({
    alpnProtocols: ['h3'],
    tlsCertificateSdsSecretConfigs: [{ name: 'kubernetes://all' }],
  });
  expect(managerOf(chain!)).toMatchObject({
    codecType: HttpConnectionManager_CodecType.HTTP3,
    routeSpecifier: { case: 'rds', value: { routeConfigName: 'https.8443.all.door.shop' } },
  });
  expect(managerOf(chain!).http3ProtocolOptions).toBeDefined();
  expect(routes.map((one) => one.responseHeadersToAdd.map(({ header }) => `${header!.key}: ${header!.value}`))).toEqual(
    [['alt-svc: h3=":443"; ma=86400']],
  );
});

it.each([
  ['the variable is not set', tcpAndUdpService + gateway(simple), {}, undefined],
  [
    'no Service has a UDP port with the number',
    overTcp + gateway(simple),
    http3Enabled,
    'no Service of the gateway has a UDP port 443',
  ],
  [
    'client certificates are required',
    tcpAndUdpService + gateway(mutual),
    http3Enabled,
    expect.stringContaining('mode MUTUAL'),
  ],
  [
    'the maximum version is TLS 1.2',
    tcpAndUdpService +
      gateway(
        simple
          .replace('}', ', maxProtocolVersion: TLSV1_2 }')
          .replace('HTTPS, maxProtocolVersion: TLSV1_2', 'HTTPS')
          .replace('credentialName: all', 'credentialName: all, maxProtocolVersion: TLSV1_2'),
      ),
    http3Enabled,
    expect.stringContaining('TLSV1_2'),
  ],
])('HTTPS servers are served only over TCP if %s', (_, yaml, options, reason) => {
  const { names, routes, shape, context } = built(yaml, options);
  expect(names).toEqual(['0.0.0.0_8443']);
  expect(routes.flatMap((one) => one.responseHeadersToAdd)).toEqual([]);
  const [mergedServers] = mergeGateways(shape, context).ports[0]!.servers;
  expect(http3Offer(mergedServers!, shape, context)?.reason).toEqual(reason);
});

it('a wider server does not serve hosts of a server with client certificates, and only the wider one offers HTTP/3', () => {
  const { listeners, routes } = built(tcpAndUdpService + gateway(mutual, simple));
  const chains = listeners.find(({ name }) => name.startsWith('udp_'))!.filterChains;
  expect(chains.map(({ filterChainMatch }) => filterChainMatch!.serverNames)).toEqual([['strict.test'], ['*.test']]);
  expect(managerOf(chains[0]!).routeSpecifier).toMatchObject({
    case: 'routeConfig',
    value: {
      virtualHosts: [{ domains: ['*'], routes: [{ action: { case: 'directResponse', value: { status: 421 } } }] }],
    },
  });
  expect(routes.map(({ name, responseHeadersToAdd }) => [name, responseHeadersToAdd.length])).toEqual([
    ['https.8443.strict.door.shop', 0],
    ['https.8443.all.door.shop', 1],
  ]);
});

it('a dual-stack gateway listens for QUIC on both address families', () => {
  const node = { ...door, metadata: { INSTANCE_IPS: '10.9.9.9,fd00::9' } };
  const quic = built(tcpAndUdpService + gateway(simple), http3Enabled, node).listeners.find(({ name }) =>
    name.startsWith('udp_'),
  )!;
  expect(quic.additionalAddresses.map(({ address }) => address!.address)).toMatchObject([
    { case: 'socketAddress', value: { address: '::', protocol: SocketAddress_Protocol.UDP } },
  ]);
});

it('a gateway listens for TCP and QUIC on one port number, regardless of the order of ports', () => {
  const first = tcpAndUdpService.replaceAll('name: quic', 'name: a-quic');
  expect(built(first + gateway(simple)).names).toEqual(['0.0.0.0_8443', 'udp_0.0.0.0_9443']);
  expect(built(first + gateway(simple), {}).names).toEqual(['0.0.0.0_8443']);
});
