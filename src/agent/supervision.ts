/** The supervisor and the watchers that tell it what should run, with their effects. */
import { rmSync } from 'node:fs';
import { basename } from 'node:path';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import { shutdownMachine } from '../../machines/agent/envoy/shutdown.machine.ts';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { binaryWatcherMachine } from '../../machines/agent/files/binary-watcher.machine.ts';
import { certWatcherMachine } from '../../machines/agent/files/cert-watcher.machine.ts';
import { directoryWatchMachine } from '../../machines/agent/files/directory-watch.machine.ts';
import { messageOf } from '../runtime/errors.ts';
import type { Logger } from '../runtime/output/log.ts';
import { adminsAt } from './admin/admin-client.ts';
import { drainListeners } from './admin/drain-listeners.ts';
import { liveProbe } from './admin/live-probe.ts';
import { countRequests } from './admin/requests-in-flight.ts';
import type { AgentProgram } from './agent-program.ts';
import { patchesBootstrap } from './agent-replacement.ts';
import { checkBinary } from './bootstrap/check-binary.ts';
import type { FirstVerdict } from './bootstrap/first-verdict.ts';
import { envoyFlags } from './bootstrap/preparation.ts';
import { judgeBootstrap, type PrepareEnvironment, prepareEpoch } from './bootstrap/prepare-epoch.ts';
import { readCertificates, waitForFiles } from './certificates/certificate-files.ts';
import { certificateJudge } from './certificates/certificate-verdict.ts';
import { watchDirectory } from './certificates/certificate-watch.ts';
import { isMarkedInitializing, repairSharedMemory } from './envoy/base-ids/shared-memory.ts';
import { envoyArguments } from './envoy/envoy-args.ts';
import { envoyProcess } from './envoy/envoy-process.ts';
import { outOfMemoryCounter } from './envoy/out-of-memory.ts';
import type { SafetyNet } from './safety-net.ts';
import type { XdsActivity } from './xds/xds-activity.ts';

/** What keeps an Envoy running: not made where none is to run, as what its bootstrap needs may not be there. */
export function supervision(
  program: AgentProgram,
  net: SafetyNet,
  {
    preparation,
    verdict,
    xds,
  }: { preparation: PrepareEnvironment; verdict: FirstVerdict | undefined; xds: XdsActivity },
) {
  const { options, log } = program;
  const { admin, guard, turns } = preparation;
  const { envoyStatusPort, envoyPrometheusPort } = options;
  const { envoySecureMetricsPort, envoySecureMergedMetricsPort } = options;
  const ownPorts = [envoyStatusPort, envoyPrometheusPort, envoySecureMetricsPort, envoySecureMergedMetricsPort];
  const newest = {
    guard,
    get binary(): string {
      return net.binaries.newestPath;
    },
  };
  return {
    supervisor: supervisorMachine.provide({
      actions: {
        keepBinaries: ({ context: { desired, provenBinary, epochs } }) =>
          net.binaries.keep(new Set([desired.binary, provenBinary, ...epochs.map(({ binary }) => binary)])),
      },
      actors: {
        epoch: epochWithEffects(program, net, { ...preparation, verdict }, xds),
        repair: repairSharedMemory(newest),
        shutdown: shutdownMachine.provide({
          actors: { countRequests: countRequests({ adminAt: adminsAt(admin.host), ownPorts }) },
        }),
      },
    }),
    binaryWatcher: binaryWatcherMachine.provide({
      actors: {
        directory: directoryWatchMachine.provide({
          actors: { watchDirectory: watchDirectory({}, {}, (name) => name === basename(program.binary)) },
        }),
        checkBinary: checkBinary({
          binaries: net.binaries,
          turns,
          hotRestart: options.hotRestart,
          words: envoyArguments(envoyFlags(options), { configFile: '/none', epoch: 0, baseId: 0 }),
          validate: (path, signal) => judgeBootstrap(preparation, path, signal),
        }),
      },
    }),
    certWatcher: certWatcherMachine.provide({
      actors: {
        waitForFiles: waitForFiles(turns),
        directory: directoryWatchMachine.provide({ actors: { watchDirectory: watchDirectory() } }),
        digestFiles: readCertificates(certificateJudge(newest), log.scope('cert-watcher'), turns),
      },
    }),
  };
}

function epochWithEffects(
  { options, log, recorder }: AgentProgram,
  { table, record }: Pick<SafetyNet, 'table' | 'record'>,
  preparation: PrepareEnvironment & { readonly verdict: FirstVerdict | undefined },
  xds: XdsActivity,
) {
  const { admin, discoveryAddress, source } = preparation;
  const adminAt = adminsAt(admin.host);
  return epochMachine.provide({
    actors: {
      // What was judged beforehand is what the control plane had not patched yet.
      prepare: prepareEpoch(preparation, patchesBootstrap(options) ? undefined : preparation.verdict),
      process: envoyProcess({
        ...preparation,
        adminAt,
        table,
        ...(record && { held: record }),
        recorder,
        log: log.scope('envoy'),
        outOfMemoryKills: outOfMemoryCounter(),
      }),
      probe: liveProbe({ adminAt, discoveryAddress, xds, isMarkedInitializing }),
      drainListeners: drainListeners({ adminAt, role: options.role }),
    },
    actions: {
      removeConfigFile: ({ context }) => {
        if (!('customConfigFile' in source)) removeQuietly(context.configFile, log);
      },
    },
  });
}

function removeQuietly(file: string, log: Logger): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    log.warn('file.notRemoved', { file, reason: messageOf(error) });
  }
}
