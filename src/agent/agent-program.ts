import { type AgentSettings, defaultSettings } from '../../machines/agent/settings.ts';
import type { Logger } from '../runtime/output/log.ts';
import type { DebuggerAccess } from '../runtime/trace/debugger-access.ts';
import type { Recorder } from '../runtime/trace/recorder.ts';
import type { TraceLevel } from '../runtime/trace/trace.ts';
import type { TraceEndpoint } from '../runtime/trace/trace-endpoint.ts';
import { patchesBootstrap } from './agent-upgrade/agent-replacement.ts';
import { firstBinary } from './envoy/envoy-binaries.ts';
import type { ProxyOptions } from './options/options.ts';
import { servesProxyless } from './options/proxyless.ts';
import type { UnwrittenLines } from './status/agent-metrics.ts';
import { accessLogSocketPath, xdsSocketPath } from './xds/xds-streams.ts';

export interface AgentProgram {
  readonly options: ProxyOptions;
  readonly binary: string;
  readonly log: Logger;
  readonly recorder: Recorder;
  /** The caller owns the access to pages of the status port that need a token. */
  readonly access: DebuggerAccess;
  readonly trace?: TraceEndpoint;
  /** `full` records each xDS message. */
  readonly traceLevel?: TraceLevel;
  readonly unwrittenLines?: () => UnwrittenLines;
  readonly succeeds?: boolean;
}

export function agentSettings({
  binary,
  options: { config, watch, identity, ...options },
  succeeds = false,
}: AgentProgram): AgentSettings {
  const { restartPolicy, hotRestart, exitOnZeroActiveConnections, minimumDrainMs } = options;
  const outlives = options.liveRestore;
  return {
    ...defaultSettings,
    adminPort: config.proxyAdminPort,
    spareAdminPort: options.spareAdminPort,
    restartPolicy,
    hotRestart,
    exitOnZeroActiveConnections,
    minimumDrainMs,
    liveRestore: outlives,
    givesWay: outlives,
    succeeds,
    drainMs: config.drainDurationMs,
    // Envoy's flag is in seconds.
    parentShutdownMs: Math.floor(config.parentShutdownDurationMs / 1000) * 1000,
    terminationDrainMs: config.terminationDrainDurationMs,
    watch: { ...defaultSettings.watch, ...watch },
    binary: { ...defaultSettings.binary, path: binary, first: firstBinary, watched: options.watchBinary },
    runsEnvoy: options.runsEnvoy,
    statusPort: config.statusPort,
    awaitsApplication: options.status.applicationPorts.length > 0,
    dns: options.dns !== undefined,
    identity: identity.settings,
    patchedBootstrap: patchesBootstrap({ ...options, config }),
    // A custom bootstrap has its own control plane.
    xdsSocket: config.customConfigFile ? '' : xdsSocketPath(config.configPath),
    accessLogSocket: options.standardMetrics === undefined ? '' : accessLogSocketPath(config.configPath),
    proxyless: servesProxyless({ ...options, config }),
    readinessProbe: options.workloadProbe?.times ?? null,
    moduleLimits: options.wasm.limits,
  };
}
