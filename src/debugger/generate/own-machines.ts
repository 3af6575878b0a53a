import type { AnyStateMachine } from 'xstate';
import {
  agentSamples,
  patchesSamples,
  predecessorSamples,
  statusSamples,
  successorSamples,
} from './own-samples/agent-samples.ts';
import { epochSamples, restartSamples, shutdownSamples, supervisorSamples } from './own-samples/envoy-samples.ts';
import { certWatcherSamples, directorySamples } from './own-samples/file-samples.ts';
import { secretSamples, secretsSamples } from './own-samples/secret-samples.ts';
import { xdsProxySamples, xdsStreamSamples } from './own-samples/xds-samples.ts';
import type { Samples } from './samples.ts';

export interface OwnMachine {
  readonly name: string;
  /** Relative to the root of the package. */
  readonly file: string;
  readonly export: string;
  readonly samples: Samples;
  load(): Promise<AnyStateMachine>;
}

/** In the order in which they are listed for users. */
export const ownMachines: readonly OwnMachine[] = [
  {
    name: 'agent',
    file: 'machines/agent/agent.machine.ts',
    export: 'agentMachine',
    samples: agentSamples,
    load: async () => (await import('../../../machines/agent/agent.machine.ts')).agentMachine,
  },
  {
    name: 'predecessor',
    file: 'machines/agent/agent-upgrade/predecessor.machine.ts',
    export: 'predecessorMachine',
    samples: predecessorSamples,
    load: async () => (await import('../../../machines/agent/agent-upgrade/predecessor.machine.ts')).predecessorMachine,
  },
  {
    name: 'successor',
    file: 'machines/agent/agent-upgrade/successor.machine.ts',
    export: 'successorMachine',
    samples: successorSamples,
    load: async () => (await import('../../../machines/agent/agent-upgrade/successor.machine.ts')).successorMachine,
  },
  {
    name: 'launcher',
    file: 'machines/agent/agent-upgrade/launcher.machine.ts',
    export: 'launcherMachine',
    samples: { events: { 'agent.ended': [{ how: 'in order' }, { how: 'gave way' }, { how: 'killed' }] } },
    load: async () => (await import('../../../machines/agent/agent-upgrade/launcher.machine.ts')).launcherMachine,
  },
  {
    name: 'stand-in',
    file: 'machines/agent/agent-upgrade/stand-in.machine.ts',
    export: 'standInMachine',
    samples: {},
    load: async () => (await import('../../../machines/agent/agent-upgrade/stand-in.machine.ts')).standInMachine,
  },
  {
    name: 'bootstrap-patches',
    file: 'machines/agent/bootstrap/bootstrap-patches.machine.ts',
    export: 'bootstrapPatchesMachine',
    samples: patchesSamples,
    load: async () =>
      (await import('../../../machines/agent/bootstrap/bootstrap-patches.machine.ts')).bootstrapPatchesMachine,
  },
  {
    name: 'supervisor',
    file: 'machines/agent/envoy/supervisor.machine.ts',
    export: 'supervisorMachine',
    samples: supervisorSamples,
    load: async () => (await import('../../../machines/agent/envoy/supervisor.machine.ts')).supervisorMachine,
  },
  {
    name: 'restart',
    file: 'machines/agent/envoy/restart.machine.ts',
    export: 'restartMachine',
    samples: restartSamples,
    load: async () => (await import('../../../machines/agent/envoy/restart.machine.ts')).restartMachine,
  },
  {
    name: 'shutdown',
    file: 'machines/agent/envoy/shutdown.machine.ts',
    export: 'shutdownMachine',
    samples: shutdownSamples,
    load: async () => (await import('../../../machines/agent/envoy/shutdown.machine.ts')).shutdownMachine,
  },
  {
    name: 'epoch',
    file: 'machines/agent/envoy/epoch.machine.ts',
    export: 'epochMachine',
    samples: epochSamples,
    load: async () => (await import('../../../machines/agent/envoy/epoch.machine.ts')).epochMachine,
  },
  {
    name: 'cert-watcher',
    file: 'machines/agent/files/cert-watcher.machine.ts',
    export: 'certWatcherMachine',
    samples: certWatcherSamples,
    load: async () => (await import('../../../machines/agent/files/cert-watcher.machine.ts')).certWatcherMachine,
  },
  {
    name: 'directory-watch',
    file: 'machines/agent/files/directory-watch.machine.ts',
    export: 'directoryWatchMachine',
    samples: directorySamples,
    load: async () => (await import('../../../machines/agent/files/directory-watch.machine.ts')).directoryWatchMachine,
  },
  {
    name: 'secrets',
    file: 'machines/agent/secrets/secrets.machine.ts',
    export: 'secretsMachine',
    samples: secretsSamples,
    load: async () => (await import('../../../machines/agent/secrets/secrets.machine.ts')).secretsMachine,
  },
  {
    name: 'secret',
    file: 'machines/agent/secrets/secret.machine.ts',
    export: 'secretMachine',
    samples: secretSamples,
    load: async () => (await import('../../../machines/agent/secrets/secret.machine.ts')).secretMachine,
  },
  {
    name: 'start-limiter',
    file: 'machines/agent/envoy/start-limiter.machine.ts',
    export: 'startLimiterMachine',
    samples: { input: { burst: 2, refillMs: 1_000 } },
    load: async () => (await import('../../../machines/agent/envoy/start-limiter.machine.ts')).startLimiterMachine,
  },
  {
    name: 'status',
    file: 'machines/agent/status/status.machine.ts',
    export: 'statusMachine',
    samples: statusSamples,
    load: async () => (await import('../../../machines/agent/status/status.machine.ts')).statusMachine,
  },
  {
    name: 'xds-proxy',
    file: 'machines/agent/xds/xds-proxy.machine.ts',
    export: 'xdsProxyMachine',
    samples: xdsProxySamples,
    load: async () => (await import('../../../machines/agent/xds/xds-proxy.machine.ts')).xdsProxyMachine,
  },
  {
    name: 'xds-stream',
    file: 'machines/agent/xds/xds-stream.machine.ts',
    export: 'xdsStreamMachine',
    samples: xdsStreamSamples,
    load: async () => (await import('../../../machines/agent/xds/xds-stream.machine.ts')).xdsStreamMachine,
  },
];
