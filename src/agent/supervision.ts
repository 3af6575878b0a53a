import { adminsAt } from './admin/admin-client.ts';
import type { ProbeEnvironment } from './admin/live-probe.ts';
import type { AgentProgram } from './agent-program.ts';
import { patchesBootstrap } from './agent-upgrade/agent-replacement.ts';
import type { FirstValidation } from './bootstrap/first-validation.ts';
import { envoyFlags } from './bootstrap/preparation.ts';
import { type PrepareEnvironment, prepareEpoch, validateBootstrapWith } from './bootstrap/prepare-epoch.ts';
import { envoyArguments } from './envoy/envoy-args.ts';
import { epochWithEffects } from './envoy/epoch.effects.ts';
import { shutdownWithEffects } from './envoy/shutdown.effects.ts';
import { supervisorWithEffects } from './envoy/supervisor.effects.ts';
import { binaryWatcherWithEffects } from './files/binary-watcher.effects.ts';
import { certWatcherWithEffects } from './files/cert-watcher.effects.ts';
import type { SafetyNet } from './safety-net.ts';

/** An Envoy that is not live yet may wait for these. */
type WaitSources = Pick<ProbeEnvironment, 'xds' | 'missingCertificate'>;

/** Created only if an Envoy must run, because otherwise its bootstrap may require files that do not exist. */
export function supervision(
  program: AgentProgram,
  safetyNet: SafetyNet,
  {
    preparation,
    firstValidation,
    probe,
  }: { preparation: PrepareEnvironment; firstValidation: FirstValidation | undefined; probe: WaitSources },
) {
  const { options, log } = program;
  const { admin, guard, turns } = preparation;
  const { envoyStatusPort, envoyPrometheusPort } = options;
  const { envoySecureMetricsPort, envoySecureMergedMetricsPort } = options;
  const ownPorts = [envoyStatusPort, envoyPrometheusPort, envoySecureMetricsPort, envoySecureMergedMetricsPort];
  const newest = {
    guard,
    get binary(): string {
      return safetyNet.binaries.newestPath;
    },
  };
  return {
    supervisor: supervisorWithEffects({
      epoch: epochOf(program, safetyNet, { ...preparation, firstValidation }, probe),
      shutdown: shutdownWithEffects({ adminAt: adminsAt(admin.host), ownPorts }),
      binaries: safetyNet.binaries,
      newest,
    }),
    binaryWatcher: binaryWatcherWithEffects(program.binary, {
      binaries: safetyNet.binaries,
      turns,
      hotRestart: options.hotRestart,
      envoyArguments: envoyArguments(envoyFlags(options), { configFile: '/none', epoch: 0, baseId: 0 }),
      validate: (path, signal) => validateBootstrapWith(preparation, path, signal),
    }),
    certWatcher: certWatcherWithEffects(newest, turns, log),
  };
}

function epochOf(
  { options, log, recorder }: AgentProgram,
  { table, record }: Pick<SafetyNet, 'table' | 'record'>,
  preparation: PrepareEnvironment & { readonly firstValidation: FirstValidation | undefined },
  probe: WaitSources,
) {
  const { admin, discoveryAddress, source } = preparation;
  const adminAt = adminsAt(admin.host);
  return epochWithEffects({
    // The first validation uses a bootstrap without patches of the control plane.
    prepare: prepareEpoch(preparation, patchesBootstrap(options) ? undefined : preparation.firstValidation),
    process: {
      ...preparation,
      adminAt,
      table,
      ...(record && { held: record }),
      recorder,
      log: log.scope('envoy'),
    },
    probe: { adminAt, discoveryAddress, ...probe },
    drain: { adminAt, role: options.role },
    ownsConfigFile: !('customConfigFile' in source),
    log,
  });
}
