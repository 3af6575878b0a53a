/** The machines of both programs, by the names that their actors have. */
import type { AnyStateMachine } from 'xstate';
import { ChartpilotError } from '../../runtime/errors.ts';
import { loadMachine } from '../generate/load-machine.ts';
import { ownMachines } from '../generate/own-machines.ts';

export interface NamedMachine {
  readonly name: string;
  /** Below the package's root. */
  readonly file: string;
  load(): Promise<AnyStateMachine>;
}

/** In the order in which a person meets them. */
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
    name: 'dns',
    file: 'machines/agent/dns/dns.machine.ts',
    load: async () => (await import('../../../machines/agent/dns/dns.machine.ts')).dnsMachine,
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
    file: 'machines/discovery/kubernetes/remote-clusters.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/kubernetes/remote-clusters.machine.ts')).remoteClustersMachine,
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
    file: 'machines/discovery/kubernetes/elections.machine.ts',
    load: async () => (await import('../../../machines/discovery/kubernetes/elections.machine.ts')).electionsMachine,
  },
  {
    name: 'leader',
    file: 'machines/discovery/kubernetes/leader.machine.ts',
    load: async () => (await import('../../../machines/discovery/kubernetes/leader.machine.ts')).leaderMachine,
  },
  {
    name: 'elected-writer',
    file: 'machines/discovery/kubernetes/elected-writer.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/kubernetes/elected-writer.machine.ts')).electedWriterMachine,
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
    file: 'machines/discovery/authority/authority.machine.ts',
    load: async () => (await import('../../../machines/discovery/authority/authority.machine.ts')).authorityMachine,
  },
  {
    name: 'shared-authority',
    file: 'machines/discovery/authority/shared-authority.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/authority/shared-authority.machine.ts')).sharedAuthorityMachine,
  },
  {
    name: 'signing-request',
    file: 'machines/discovery/authority/signing-request.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/authority/signing-request.machine.ts')).signingRequestMachine,
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
    file: 'machines/discovery/kubernetes/distribution.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/kubernetes/distribution.machine.ts')).distributionMachine,
  },
  {
    name: 'secret-access',
    file: 'machines/discovery/kubernetes/secret-access.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/kubernetes/secret-access.machine.ts')).secretAccessMachine,
  },
  {
    name: 'access-review',
    file: 'machines/discovery/kubernetes/access-review.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/kubernetes/access-review.machine.ts')).accessReviewMachine,
  },
  {
    name: 'credential-dates',
    file: 'machines/discovery/credentials/credential-dates.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/credentials/credential-dates.machine.ts')).credentialDatesMachine,
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
    file: 'machines/discovery/authority/server-certificate.machine.ts',
    load: async () =>
      (await import('../../../machines/discovery/authority/server-certificate.machine.ts')).serverCertificateMachine,
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
    file: 'machines/discovery/ads/ads-connection.machine.ts',
    load: async () => (await import('../../../machines/discovery/ads/ads-connection.machine.ts')).adsConnectionMachine,
  },
];

/**
 * A machine of ours by its name, or one of a module by the module's path.
 *
 * @throws ChartpilotError FLAG_INVALID when there is no such name, file or export; MACHINE_INVALID when what is there is none
 */
export async function findMachine(request: string, exportName?: string): Promise<AnyStateMachine> {
  const named = namedMachines.find(({ name }) => name === request);
  if (named !== undefined) return named.load();
  if (!/[./\\]/.test(request)) {
    throw new ChartpilotError('FLAG_INVALID', `no machine of chartpilot is named ${request}`, {
      hint: `its machines are ${namedMachines.map(({ name }) => name).join(', ')}; a module of yours is given by its path, ./${request}.machine.ts`,
    });
  }
  const { machine } = await loadMachine({ machine: request, ...(exportName !== undefined && { export: exportName }) });
  return machine;
}
