import type { AnyStateMachine } from 'xstate';
import { ChartpilotError } from '../../runtime/errors.ts';
import { loadMachine, refuseExport } from '../generate/load-machine.ts';
import { ownMachines } from '../generate/own-machines.ts';

export interface NamedMachine {
  readonly name: string;
  /** Relative to the root of the package. */
  readonly file: string;
  load(): Promise<AnyStateMachine>;
}

/** Users see the machines in this order. */
export const namedMachines: readonly NamedMachine[] = [
  ...ownMachines,
  {
    name: 'binary-watcher',
    file: 'machines/agent/files/binary-watcher.machine.ts',
    load: async () => (await import('../../../machines/agent/files/binary-watcher.machine.ts')).binaryWatcherMachine,
  },
  {
    name: 'workload-health',
    file: 'machines/agent/xds/workload-health.machine.ts',
    load: async () => (await import('../../../machines/agent/xds/workload-health.machine.ts')).workloadHealthMachine,
  },
  {
    name: 'wasm-module',
    file: 'machines/agent/wasm/wasm-module.machine.ts',
    load: async () => (await import('../../../machines/agent/wasm/wasm-module.machine.ts')).wasmModuleMachine,
  },
  {
    name: 'dns',
    file: 'machines/agent/dns/dns.machine.ts',
    load: async () => (await import('../../../machines/agent/dns/dns.machine.ts')).dnsMachine,
  },
  {
    name: 'grpc-bootstrap',
    file: 'machines/agent/bootstrap/grpc-bootstrap.machine.ts',
    load: async () =>
      (await import('../../../machines/agent/bootstrap/grpc-bootstrap.machine.ts')).grpcBootstrapMachine,
  },
  {
    name: 'access-logs',
    file: 'machines/agent/access-logs/access-logs.machine.ts',
    load: async () => (await import('../../../machines/agent/access-logs/access-logs.machine.ts')).accessLogsMachine,
  },
  {
    name: 'discovery',
    file: 'machines/discovery/discovery.machine.ts',
    load: async () => (await import('../../../machines/discovery/discovery.machine.ts')).discoveryMachine,
  },
  {
    name: 'mesh-config',
    file: 'machines/discovery/config/mesh-config.machine.ts',
    load: async () => (await import('../../../machines/discovery/config/mesh-config.machine.ts')).meshConfigMachine,
  },
  {
    name: 'config-controller',
    file: 'machines/discovery/config/config-controller.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/config/config-controller.machine.ts')).configControllerMachine,
  },
  {
    name: 'config-source',
    file: 'machines/discovery/config/config-source.machine.ts',
    load: async () => (await import('../../../machines/discovery/config/config-source.machine.ts')).configSourceMachine,
  },
  {
    name: 'xds-source',
    file: 'machines/discovery/config/xds-source.machine.ts',
    load: async () => (await import('../../../machines/discovery/config/xds-source.machine.ts')).xdsSourceMachine,
  },
  {
    name: 'service-registry',
    file: 'machines/discovery/registry/service-registry.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/registry/service-registry.machine.ts')).serviceRegistryMachine,
  },
  {
    name: 'registry',
    file: 'machines/discovery/registry/registry.machine.ts',
    load: async () => (await import('../../../machines/discovery/registry/registry.machine.ts')).registryMachine,
  },
  {
    name: 'api-server',
    file: 'machines/discovery/kubernetes/api-server.machine.ts',
    load: async () => (await import('../../../machines/discovery/kubernetes/api-server.machine.ts')).apiServerMachine,
  },
  {
    name: 'remote-clusters',
    file: 'machines/discovery/remote/remote-clusters.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/remote/remote-clusters.machine.ts')).remoteClustersMachine,
  },
  {
    name: 'consul',
    file: 'machines/discovery/consul/consul.machine.ts',
    load: async () => (await import('../../../machines/discovery/consul/consul.machine.ts')).consulMachine,
  },
  {
    name: 'consul-catalog',
    file: 'machines/discovery/consul/consul-catalog.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/consul/consul-catalog.machine.ts')).consulCatalogMachine,
  },
  {
    name: 'registrations',
    file: 'machines/discovery/registration/registrations.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/registration/registrations.machine.ts')).registrationsMachine,
  },
  {
    name: 'registration',
    file: 'machines/discovery/registration/registration.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/registration/registration.machine.ts')).registrationMachine,
  },
  {
    name: 'elections',
    file: 'machines/discovery/election/elections.machine.ts',
    load: async () => (await import('../../../machines/discovery/election/elections.machine.ts')).electionsMachine,
  },
  {
    name: 'leader',
    file: 'machines/discovery/election/leader.machine.ts',
    load: async () => (await import('../../../machines/discovery/election/leader.machine.ts')).leaderMachine,
  },
  {
    name: 'elected-writer',
    file: 'machines/discovery/election/elected-writer.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/election/elected-writer.machine.ts')).electedWriterMachine,
  },
  {
    name: 'informer',
    file: 'machines/discovery/kubernetes/informer.machine.ts',
    load: async () => (await import('../../../machines/discovery/kubernetes/informer.machine.ts')).informerMachine,
  },
  {
    name: 'jwks',
    file: 'machines/discovery/jwks/jwks.machine.ts',
    load: async () => (await import('../../../machines/discovery/jwks/jwks.machine.ts')).jwksMachine,
  },
  {
    name: 'key-set',
    file: 'machines/discovery/jwks/key-set.machine.ts',
    load: async () => (await import('../../../machines/discovery/jwks/key-set.machine.ts')).keySetMachine,
  },
  {
    name: 'authority',
    file: 'machines/discovery/ca/authority.machine.ts',
    load: async () => (await import('../../../machines/discovery/ca/authority.machine.ts')).authorityMachine,
  },
  {
    name: 'shared-authority',
    file: 'machines/discovery/ca/shared-authority.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/ca/shared-authority.machine.ts')).sharedAuthorityMachine,
  },
  {
    name: 'stream-admission',
    file: 'machines/discovery/xds/stream-admission.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/xds/stream-admission.machine.ts')).streamAdmissionMachine,
  },
  {
    name: 'memory-release',
    file: 'machines/discovery/xds/memory-release.machine.ts',
    load: async () => (await import('../../../machines/discovery/xds/memory-release.machine.ts')).memoryReleaseMachine,
  },
  {
    name: 'signing-request',
    file: 'machines/discovery/ca/signing-request.machine.ts',
    load: async () => (await import('../../../machines/discovery/ca/signing-request.machine.ts')).signingRequestMachine,
  },
  {
    name: 'gateway-names',
    file: 'machines/discovery/registry/gateway-names.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/registry/gateway-names.machine.ts')).gatewayNamesMachine,
  },
  {
    name: 'gateway-name',
    file: 'machines/discovery/registry/gateway-name.machine.ts',
    load: async () => (await import('../../../machines/discovery/registry/gateway-name.machine.ts')).gatewayNameMachine,
  },
  {
    name: 'distribution',
    file: 'machines/discovery/distribution/distribution.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/distribution/distribution.machine.ts')).distributionMachine,
  },
  {
    name: 'secret-access',
    file: 'machines/discovery/secrets/secret-access.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/secrets/secret-access.machine.ts')).secretAccessMachine,
  },
  {
    name: 'access-review',
    file: 'machines/discovery/secrets/access-review.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/secrets/access-review.machine.ts')).accessReviewMachine,
  },
  {
    name: 'name-server',
    file: 'machines/discovery/names/name-server.machine.ts',
    load: async () => (await import('../../../machines/discovery/names/name-server.machine.ts')).nameServerMachine,
  },
  {
    name: 'webhook-server',
    file: 'machines/discovery/webhooks/webhook-server.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/webhooks/webhook-server.machine.ts')).webhookServerMachine,
  },
  {
    name: 'credential-dates',
    file: 'machines/discovery/secrets/credential-dates.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/secrets/credential-dates.machine.ts')).credentialDatesMachine,
  },
  {
    name: 'trust-bundles',
    file: 'machines/discovery/bundles/trust-bundles.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/bundles/trust-bundles.machine.ts')).trustBundlesMachine,
  },
  {
    name: 'trust-bundle',
    file: 'machines/discovery/bundles/trust-bundle.machine.ts',
    load: async () => (await import('../../../machines/discovery/bundles/trust-bundle.machine.ts')).trustBundleMachine,
  },
  {
    name: 'server-certificate',
    file: 'machines/discovery/ca/server-certificate.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/ca/server-certificate.machine.ts')).serverCertificateMachine,
  },
  {
    name: 'push',
    file: 'machines/discovery/push/push.machine.ts',
    load: async () => (await import('../../../machines/discovery/push/push.machine.ts')).pushMachine,
  },
  {
    name: 'push-queue',
    file: 'machines/discovery/push/push-queue.machine.ts',
    load: async () => (await import('../../../machines/discovery/push/push-queue.machine.ts')).pushQueueMachine,
  },
  {
    name: 'ads-connection',
    file: 'machines/discovery/xds/ads-connection.machine.ts',
    load: async () => (await import('../../../machines/discovery/xds/ads-connection.machine.ts')).adsConnectionMachine,
  },
];

/**
 * @param request the name of a machine of chartpilot, or the path of a module
 * @throws ChartpilotError FLAG_INVALID if there is no such name, file or export; MACHINE_INVALID if the export is not a machine
 */
export async function findMachine(request: string, exportName?: string): Promise<AnyStateMachine> {
  const namedMachine = namedMachines.find(({ name }) => name === request);
  if (namedMachine !== undefined) {
    refuseExport({ machine: request, export: exportName });
    return namedMachine.load();
  }
  if (!/[./\\]/.test(request)) {
    throw new ChartpilotError('FLAG_INVALID', `unknown machine '${request}'`, {
      hint: `machines of chartpilot: ${namedMachines.map(({ name }) => name).join(', ')}; for a module of your own, name its path, such as ./${request}.machine.ts`,
      fields: { path: 'MACHINE', got: request },
    });
  }
  const { machine } = await loadMachine({ machine: request, ...(exportName !== undefined && { export: exportName }) });
  return machine;
}
