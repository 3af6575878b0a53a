import { toJson } from '@bufbuild/protobuf';
import { extensionType } from '../../../../machines/discovery/xds/ads-types.ts';
import { type NameTable, NameTableSchema } from '../../../gen/istio/networking/nds/v1/nds_pb.ts';
import type { Config } from '../../../model/config/config.ts';
import type { WorkloadPolicies } from '../../../model/push-context/workload-policies.ts';
import { buildNameTable, clusterType, endpointType } from '../../../networking/index.ts';
import type { MeshNode } from '../../push/mesh-resources.ts';
import type { HttpReply } from '../http/http-server.ts';
import { type DebugPage, type DebugSources, okReply, textReply, withProxy } from './debug-page.ts';
import { asKubernetesObject } from './kubernetes-object.ts';

type PolicyList = Exclude<keyof WorkloadPolicies, 'id'>;

export const proxyConfigPages: readonly DebugPage[] = [
  {
    path: 'config_dump',
    description:
      'configuration sent to a proxy, in the format of /config_dump of Envoy; ?proxyID=ID, &types=cds,lds,rds,eds,sds,ecds, &include_eds',
    allowsOtherNamespaces: true,
    respond: (sources, request) =>
      withProxy(sources, request, async (connection, node) => {
        // Loaded on demand, because it imports the descriptors of all extensions.
        const { configDump } = await import('./config-dump.ts');
        return okReply(configDump(connection, node, request.query));
      }),
  },
  {
    path: 'edsz',
    description: 'endpoints sent to a proxy; ?proxyID=ID',
    allowsOtherNamespaces: true,
    respond: respondWithType(endpointType),
  },
  {
    path: 'ecdsz',
    description: 'extensions sent to a proxy; ?proxyID=ID',
    respond: respondWithType(extensionType),
  },
  { path: 'cdsz', description: 'clusters sent to a proxy; ?proxyID=ID', respond: respondWithType(clusterType) },
  {
    path: 'ndsz',
    description: 'DNS name table sent to a proxy; ?proxyID=ID',
    allowsOtherNamespaces: true,
    respond: (sources, request) =>
      withProxy(sources, request, (_, node) => {
        const [table] = buildNameTable(node.shape, node.context);
        if (table === undefined) return textReply('gateways have no DNS name table', 404);
        return okReply(toJson(NameTableSchema, table.message as NameTable) as object);
      }),
  },
  {
    path: 'sidecarz',
    description: 'services visible to a proxy, and its Sidecar object; ?proxyID=ID',
    respond: (sources, request) => withProxy(sources, request, (_, node) => okReply(scopeOf(node))),
  },
  {
    path: 'authorizationz',
    description: 'AuthorizationPolicies that apply to a proxy; ?proxyID=ID',
    respond: (sources, request) =>
      withProxy(sources, request, (_, node) => policies(sources, node, 'authorizationPolicies')),
  },
  {
    path: 'authenticationz',
    description: 'PeerAuthentication and RequestAuthentication objects that apply to a proxy; ?proxyID=ID',
    respond: (sources, request) =>
      withProxy(sources, request, (_, node) =>
        policies(sources, node, 'peerAuthentications', 'requestAuthentications'),
      ),
  },
  {
    path: 'telemetryz',
    description: 'Telemetry objects that apply to a proxy; ?proxyID=ID',
    respond: (sources, request) => withProxy(sources, request, (_, node) => policies(sources, node, 'telemetries')),
  },
];

function respondWithType(typeUrl: string): DebugPage['respond'] {
  return (sources, request) =>
    withProxy(sources, request, async (connection, node) => {
      const { dumpOfType } = await import('./config-dump.ts');
      return okReply(dumpOfType(typeUrl, connection, node));
    });
}

function scopeOf({ proxy, context }: MeshNode): object {
  const scope = context.sidecarScopeFor(proxy);
  const { namespace, sidecar, outboundTrafficPolicy, services, egressListeners } = scope;
  const hostnames = [...new Set(services.map(({ hostname }) => hostname))];
  return {
    version: context.version,
    name: sidecar?.name ?? 'default-sidecar',
    namespace,
    outboundTrafficPolicy,
    services: services.map(nameOf),
    egressListenerServices: egressListeners.map(({ port, bind, captureMode, services: visibleServices }) => ({
      ...(port !== undefined && { port }),
      ...(bind !== undefined && { bind }),
      captureMode,
      services: visibleServices.map(nameOf),
    })),
    servicesByHostname: Object.fromEntries(
      hostnames.flatMap((hostname) => {
        const service = scope.serviceByHostname(hostname);
        return service === undefined ? [] : [[hostname, nameOf(service)]];
      }),
    ),
    ...(sidecar !== undefined && { sidecar: asKubernetesObject(sidecar) }),
    destinationRules: Object.fromEntries(
      services.flatMap((service) => {
        const rule = context.destinationRuleFor(proxy.configNamespace, service, proxy.labels);
        return rule === undefined ? [] : [[nameOf(service), rule]];
      }),
    ),
  };
}

function nameOf({ namespace, hostname }: { readonly namespace: string; readonly hostname: string }): string {
  return `${namespace}/${hostname}`;
}

function policies({ state }: DebugSources, { proxy, shape, context }: MeshNode, ...lists: PolicyList[]): HttpReply {
  const appliedPolicies = context.policiesFor(shape);
  const appliedConfigs = lists.flatMap((list): readonly Config[] => appliedPolicies[list]);
  const { rootNamespace } = state.mesh;
  const policies = appliedConfigs.map((config) => asKubernetesObject(config, rootNamespace));
  return okReply({ proxy: proxy.id, rootNamespace, policies });
}
