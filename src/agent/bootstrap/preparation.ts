import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import type { Logger } from '../../runtime/output/log.ts';
import type { AgentProgram } from '../agent-program.ts';
import type { EnvoyFlags } from '../envoy/envoy-args.ts';
import type { ScratchParent } from '../envoy/scratch-folder.ts';
import type { EpochId } from '../envoy/serving-envoy.ts';
import { localAddresses } from '../options/addresses.ts';
import type { ProxyOptions } from '../options/options.ts';
import type { SafetyNet } from '../safety-net.ts';
import { agentBootstrap } from './agent-bootstrap.ts';
import type { BootstrapPatches } from './bootstrap-patches.ts';
import { controlPlaneTls } from './control-plane-tls.ts';
import { firstRun } from './first-validation.ts';
import type { PrepareEnvironment } from './prepare-epoch.ts';
import { userFilesOf } from './user-files.ts';

export function buildPrepareEnvironment(
  { options, log }: AgentProgram,
  { binaries }: Pick<SafetyNet, 'binaries'>,
  {
    hasCredentialServer,
    patches,
    ...tools
  }: Pick<PrepareEnvironment, 'admin' | 'guard' | 'turns' | 'scratch'> & {
    hasCredentialServer: boolean;
    patches: BootstrapPatches;
  },
): PrepareEnvironment {
  const { config } = options;
  const source = bootstrapSource(options, { hasCredentialServer, patches, log });
  return {
    ...tools,
    binaries,
    source,
    flags: envoyFlags(options),
    userFiles: userFilesOf(options),
    configPath: config.configPath,
    // A custom bootstrap may have no control plane.
    discoveryAddress: 'bootstrap' in source ? config.discoveryAddress : undefined,
    certificates: options.watch.directories,
  };
}

export function adminOf({ addresses, config }: ProxyOptions): PrepareEnvironment['admin'] {
  return { host: localAddresses(addresses).localhost, port: config.proxyAdminPort };
}

/** The run directory may not be writable. */
export function scratchFolders(runDir: string, { configPath }: ProxyOptions['config']): ScratchParent[] {
  return [
    { path: resolve(runDir), flag: '--runDir' },
    { path: resolve(configPath), flag: '--configPath' },
    { path: tmpdir(), flag: 'TMPDIR' },
  ];
}

export function envoyFlags(options: ProxyOptions): EnvoyFlags {
  const { config, addresses, logLevel, concurrency, configOverride, hotRestart } = options;
  const { skipDeprecatedLogs, enableCoreDump } = options;
  const { fileFlushIntervalMs, fileFlushMinSizeKb } = config;
  return {
    drainMs: config.drainDurationMs,
    parentShutdownMs: config.parentShutdownDurationMs,
    ipVersion: localAddresses(addresses).ipVersion,
    logLevel: logLevel.level,
    componentLogLevel: logLevel.components,
    concurrency,
    configOverride,
    skipDeprecatedLogs,
    enableCoreDump,
    ...(!hotRestart && { disableHotRestart: true }),
    ...(fileFlushIntervalMs !== undefined && { fileFlushIntervalMs }),
    ...(fileFlushMinSizeKb !== undefined && { fileFlushMinSizeKb }),
  };
}

/** Builds the bootstrap once, so that invalid settings end the start. */
function bootstrapSource(
  options: ProxyOptions,
  { hasCredentialServer, patches, log }: { hasCredentialServer: boolean; patches: BootstrapPatches; log: Logger },
): PrepareEnvironment['source'] {
  const { customConfigFile, proxyAdminPort } = options.config;
  if (customConfigFile) return { customConfigFile };
  controlPlaneTls(options.config, options.env);
  const generate = (adminPort: number, run: EpochId) =>
    agentBootstrap(options, { adminPort, run, hasCredentialServer });
  for (const warning of generate(proxyAdminPort, firstRun).warnings) log.write(warning);
  return { bootstrap: (adminPort, run) => patches.mergedInto(generate(adminPort, run).bootstrap) };
}
