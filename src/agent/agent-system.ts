/** The agent: its statecharts with their effects, started, recorded, and cleaned up after whatever happens. */

import { rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, resolve } from 'node:path';
import { type ActorRefFrom, type AnyActorRef, fromPromise, type SnapshotFrom } from 'xstate';
import { type AgentOutput, agentMachine, gaveWay } from '../../machines/agent/agent.machine.ts';
import { bootstrapPatchesMachine } from '../../machines/agent/bootstrap/bootstrap-patches.machine.ts';
import { dnsMachine } from '../../machines/agent/dns/dns.machine.ts';
import { type ClaimedIds, knowledgeOf } from '../../machines/agent/envoy/adoption.ts';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import { shutdownMachine } from '../../machines/agent/envoy/shutdown.machine.ts';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { binaryWatcherMachine } from '../../machines/agent/files/binary-watcher.machine.ts';
import { certWatcherMachine } from '../../machines/agent/files/cert-watcher.machine.ts';
import { directoryWatchMachine } from '../../machines/agent/files/directory-watch.machine.ts';
import { identityName } from '../../machines/agent/secrets/held-secrets.ts';
import { type AgentSettings, defaultSettings, type IdentitySettings } from '../../machines/agent/settings.ts';
import { statusMachine } from '../../machines/agent/status/status.machine.ts';
import { isOn } from '../model/fields/switches.ts';
import { startRoot, whenDone } from '../runtime/actors/actor-system.ts';
import { logRecords } from '../runtime/actors/log-records.ts';
import { inOneLine, messageOf } from '../runtime/errors.ts';
import { catchUncaught, faultLog } from '../runtime/fences/uncaught.ts';
import { chooseRunDir } from '../runtime/files/run-dir.ts';
import type { Logger } from '../runtime/output/log.ts';
import { Ownership } from '../runtime/ownership.ts';
import type { Recorder } from '../runtime/trace/recorder.ts';
import { redactor } from '../runtime/trace/redact.ts';
import type { TraceLevel } from '../runtime/trace/trace.ts';
import type { TraceEndpoint } from '../runtime/trace/trace-endpoint.ts';
import { Ending } from '../runtime/verdicts/ending.ts';
import { adminsAt } from './admin/admin-client.ts';
import { drainListeners } from './admin/drain-listeners.ts';
import { liveProbe } from './admin/live-probe.ts';
import { countRequests } from './admin/requests-in-flight.ts';
import {
  givesWay,
  patchesBootstrap,
  restoresLive,
  resumeWhatRuns,
  succession,
  whyNotReplaced,
} from './agent-replacement.ts';
import { agentBootstrap } from './bootstrap/agent-bootstrap.ts';
import { askForPatches, BootstrapPatches } from './bootstrap/bootstrap-patches.ts';
import { checkBinary } from './bootstrap/check-binary.ts';
import { controlPlaneTls } from './bootstrap/control-plane-tls.ts';
import { FirstVerdict, firstRun } from './bootstrap/first-verdict.ts';
import { nodeIdOf } from './bootstrap/node-metadata.ts';
import { judgeBootstrap, type PrepareEnvironment, prepareEpoch } from './bootstrap/prepare-epoch.ts';
import { readCertificates, waitForFiles } from './certificates/certificate-files.ts';
import { certificateJudge } from './certificates/certificate-verdict.ts';
import { watchDirectory } from './certificates/certificate-watch.ts';
import { FileTurns } from './certificates/file-turns.ts';
import { DnsCounts } from './dns/dns-counts.ts';
import { dnsServer } from './dns/dns-effect.ts';
import type { DnsOptions } from './dns/dns-options.ts';
import { DnsTables } from './dns/dns-tables.ts';
import { AgentRecord } from './envoy/agent-record.ts';
import { BaseIdTable } from './envoy/base-id-table.ts';
import { type EnvoyFlags, envoyArguments } from './envoy/envoy-args.ts';
import { EnvoyBinaries, firstBinary } from './envoy/envoy-binaries.ts';
import { envoyProcess } from './envoy/envoy-process.ts';
import { outOfMemoryCounter } from './envoy/out-of-memory.ts';
import { parentDeathGuard, usualGuard } from './envoy/parent-death.ts';
import { ProcessTable } from './envoy/process-table.ts';
import type { ScratchParent } from './envoy/scratch-folder.ts';
import type { EnvoyRun, ServingPorts } from './envoy/serving-envoy.ts';
import { repairSharedMemory } from './envoy/shared-memory.ts';
import { ToldFiles } from './envoy/told-files.ts';
import { ControlPlaneCredentials } from './identity/control-plane-credentials.ts';
import { credentialServerAnswers } from './identity/credential-server.ts';
import { ToldRoots } from './identity/told-roots.ts';
import { localAddresses } from './options/addresses.ts';
import type { ProxyOptions } from './options/options.ts';
import { requireFolders } from './options/requirements.ts';
import { SecretCounts } from './secrets/secret-counts.ts';
import { SecretVault } from './secrets/secret-vault.ts';
import { workloadSecrets } from './secrets/workload-secrets.ts';
import { SignalInbox, signals, startedByLauncher } from './signals.ts';
import { AgentMetrics, type UnwrittenLines } from './status/agent-metrics.ts';
import { ApplicationProber } from './status/application-prober.ts';
import { LivingEpochs } from './status/living-epochs.ts';
import { restartLogLine } from './status/restart-log.ts';
import { statusServer } from './status/status-server.ts';
import type { UpstreamEnvironment } from './xds/upstream.ts';
import { workloadXds } from './xds/workload-xds.ts';
import { XdsActivity } from './xds/xds-activity.ts';
import { xdsHeaders } from './xds/xds-headers.ts';
import { xdsSocketPath } from './xds/xds-streams.ts';

export interface AgentProgram {
  readonly options: ProxyOptions;
  /** Path of the Envoy binary; empty where none is to run. */
  readonly binary: string;
  readonly log: Logger;
  readonly recorder: Recorder;
  /** Offered at the status port; absent: not at all. The caller that made it ends it. */
  readonly trace?: TraceEndpoint;
  /** Full: messages on xDS streams are told, each. */
  readonly traceLevel?: TraceLevel;
  /** What of the log and the trace is not out. */
  readonly unwrittenLines?: () => UnwrittenLines;
  /** An older agent of this container is to give way to this one. */
  readonly succeeds?: boolean;
}

/**
 * Runs the agent until it is told to end, or cannot go on.
 *
 * @returns the exit code, and what to tell the person
 * @throws ChartpilotError when what was configured cannot be done at all
 */
export async function runAgent(program: AgentProgram): Promise<AgentOutput> {
  const { options, log, recorder } = program;
  if (program.succeeds && !givesWay(options)) {
    return {
      exitCode: gaveWay,
      trouble: [`no agent of this container is replaced while it runs: ${whyNotReplaced(options)}`],
    };
  }
  for (const warning of options.warnings) log.warn(warning);
  if (options.liveRestore && !restoresLive(options)) {
    log.warn('LIVE_RESTORE: the control plane patches the bootstrap, so an agent that is killed takes its Envoy along');
  }
  const { hotRestart, config } = options;
  const configPath = config.customConfigFile ? undefined : config.configPath;
  requireFolders({ runDir: chooseRunDir(options.runDir), configPath, hotRestart });
  const net = new SafetyNet(program);
  const xds = new XdsActivity();
  const metrics = new AgentMetrics(undefined, program.unwrittenLines, xds);
  metrics.identityIs(options.identity.settings);
  const openFence = lastFence(log, metrics);
  const stopLogging = logRecords(recorder, log.scope('agent'), {
    // A probe asks each second.
    quiet: (actor, cause) => actor === 'start-limiter' || cause.startsWith('readiness.'),
    tell: restartLogLine,
  });
  recorder.observe((record) => metrics.observe(record));
  const living = new LivingEpochs();
  recorder.observe((record) => living.observe(record));
  const ending = new Ending('agent');
  const stopFollowing = recorder.observe((record) => ending.take(record));
  try {
    const { machine, verdict } = await agentWithEffects(program, net, { metrics, xds, living });
    const actor = startRoot(machine, {
      id: 'agent',
      input: { settings: agentSettings(program) },
      recorder,
      onError: () => {},
    });
    const stopKeeping = net.record && keepRecord(actor, net.record);
    try {
      // No Envoy is started before it has taken its flags: what it refuses of them ends the agent without having begun.
      const output = await Promise.race([whenDone(actor), ...(verdict === undefined ? [] : [verdict.refusal()])]);
      if (output === undefined) throw new Error('the agent ended without saying how');
      return output;
    } finally {
      verdict?.end();
      stopKeeping?.();
      actor.stop();
    }
  } finally {
    stopLogging();
    stopFollowing();
    const left = await net.cleanUp();
    for (const { pid, epoch } of left) log.error('an Envoy was left over and has been ended', { pid, epoch });
    // The last line, as the debugger would say it: what comes after it is not the agent's doing.
    if (ending.sentence !== undefined) log.info(`the agent ${redactor()(ending.sentence)}`);
    openFence();
  }
}

/** What the supervisor thinks is written as soon as it thinks so, and before its next Envoy has a process. @returns undoes it */
function keepRecord(agent: AnyActorRef, record: AgentRecord): () => void {
  let supervisor: AnyActorRef | undefined;
  const follow = (): void => {
    const found = agent.system.get('supervisor') as ActorRefFrom<typeof supervisorMachine> | undefined;
    if (found === undefined || found === supervisor) return;
    supervisor = found;
    const write = (snapshot: SnapshotFrom<typeof supervisorMachine>): void => {
      // What is being taken over is known from the record that is there.
      if (snapshot.context.adopted.length === 0) record.supervisorKnows(knowledgeOf(snapshot.context));
    };
    write(found.getSnapshot());
    found.subscribe(write);
  };
  follow();
  const { unsubscribe } = agent.subscribe(follow);
  return unsubscribe;
}

/** Whatever escapes costs no Envoy: the charts go on, and so does all that works without what broke. @returns undoes it */
function lastFence(log: Logger, metrics: AgentMetrics): () => void {
  const report = faultLog(log);
  return catchUncaught((error, origin) => {
    metrics.errorEscaped(origin);
    report(`an error escaped (${origin}); the agent goes on`, error);
  });
}

/**
 * What lies outside the statecharts: the processes that were started, and the base ids. Whatever ends the agent in good
 * order or by an exception, no Envoy and no shared memory is left. (Killed, the kernel ends the Envoys, and the next
 * agent sweeps.)
 */
class SafetyNet {
  readonly table = new ProcessTable();
  readonly baseIds = new BaseIdTable();
  /** What Envoys are started from, held until the program is over. */
  readonly binaries: EnvoyBinaries;
  /** What the next agent is left, if this one is killed; undefined: nothing outlives it. */
  readonly record: AgentRecord | undefined;
  /** Open from before the charts until the process is over: no signal cuts a clean-up short, or changes the exit code. */
  readonly signals: SignalInbox;
  readonly #onExit = (): void => {
    if (this.table.letsGo) return;
    this.table.killAll();
    this.record?.close();
    this.baseIds.releaseAll();
  };

  constructor({ binary, options, succeeds }: AgentProgram) {
    // Until it holds, an older agent goes on with what it adopts.
    if (succeeds) this.table.letGo();
    this.binaries = new EnvoyBinaries(binary);
    this.record = restoresLive(options) ? new AgentRecord(chooseRunDir(options.runDir)) : undefined;
    process.once('exit', this.#onExit);
    this.signals = new SignalInbox({ terminalIsAnothers: startedByLauncher(options.env) });
  }

  async cleanUp(): Promise<ReturnType<ProcessTable['list']>> {
    if (this.table.letsGo) {
      this.baseIds.letGoAll();
      this.binaries.close();
      process.off('exit', this.#onExit);
      return [];
    }
    // The charts have given them their time.
    const left = await this.table.endAll(lastLimitMs);
    this.record?.close();
    this.baseIds.releaseAll();
    this.binaries.close();
    process.off('exit', this.#onExit);
    return left;
  }
}

/** For an Envoy that was left over to end of a SIGKILL. */
const lastLimitMs = 2_000;

async function agentWithEffects(
  program: AgentProgram,
  net: SafetyNet,
  { metrics, xds, living }: { metrics: AgentMetrics; xds: XdsActivity; living: LivingEpochs },
) {
  const { options, log, trace } = program;
  const { config } = options;
  const admin = adminOf(options);
  const runDir = chooseRunDir(options.runDir);
  const probing = parentDeathGuard();
  const hasCredentialServer = await credentialServerAnswers();
  const names = options.dns && new DnsTables(options.dns.workload);
  const turns = new FileTurns();
  const vault = new SecretVault();
  const counts = new SecretCounts(vault);
  metrics.withSecrets(counts);
  const told = new ToldRoots();
  const patches = new BootstrapPatches();
  const way = wayToControlPlane(program, vault, told);
  const prepared = options.runsEnvoy
    ? preparationOf(program, net, {
        admin,
        guard: usualGuard,
        turns,
        scratch: scratchFolders(runDir, config),
        hasCredentialServer,
        patches,
      })
    : undefined;
  // Envoy reads while everything else is made; where the usual guard is none it says nothing, and is asked again in its turn.
  // One that runs already has been asked.
  const isFirst = net.record?.isThere !== true;
  const verdict = prepared && isFirst ? new FirstVerdict(prepared) : undefined;
  const preparation = prepared && { ...prepared, guard: await probing };
  const { table, baseIds, binaries, record } = net;
  const ownership = new Ownership(program.succeeds !== true);
  const kept = record && new ToldFiles(record.directory);
  const inheritance = record && kept && { table, baseIds, binaries, record, runDir, ownership, told: kept };
  await beginWithNames(names, kept);
  const shared = givesWay(options) ? { ownership } : {};
  const machine = agentMachine.provide({
    actors: {
      signals: signals(net.signals),
      claimBaseIds: fromPromise<ClaimedIds, { succeeds: boolean }>(() =>
        inOneLine(async () => {
          if (program.succeeds) return { baseIds: [], sweptFiles: [] };
          const resumed = inheritance && (await resumeWhatRuns(inheritance));
          if (resumed !== undefined) return resumed;
          const { baseId, hotRestart, runsEnvoy } = options;
          if (!runsEnvoy) return { baseIds: [], sweptFiles: [] };
          const withSpare = hotRestart && !config.customConfigFile;
          const claimed = await net.baseIds.claim({ runDir, withSpare, ...(baseId !== undefined && { baseId }) });
          net.record?.keep(claimed.baseIds, { binaries: net.binaries });
          return claimed;
        }),
      ),
      releaseBaseIds: fromPromise<void, { baseIds: number[]; keeps: boolean }>(async ({ input }) => {
        if (input.keeps) {
          net.baseIds.letGoAll();
          await ownership.leave();
          return;
        }
        await net.table.endAll();
        net.baseIds.release(input.baseIds);
      }),
      ...(inheritance && givesWay(options) && succession(inheritance)),
      status: statusMachine.provide({
        actors: {
          http: statusServer({
            adminAt: adminsAt(admin.host),
            adminPort: admin.port,
            runsEnvoy: options.runsEnvoy,
            metrics,
            ports: servingPorts(options),
            newest: () => living.newest,
            prober: applicationProber(options, log),
            applicationMetrics: options.status.applicationMetrics,
            drain: options.role === 'sidecar' ? 'inboundonly' : 'all',
            profiling: options.status.profiling,
            metricsForThisHost: options.status.metricsForThisHost,
            application: { ports: options.status.applicationPorts, addresses: options.addresses },
            ...(names && { names: () => names.names }),
            log: log.scope('status'),
            ...(givesWay(options) && { shares: program.succeeds ? ('later' as const) : ('first' as const) }),
            ...(trace && { trace }),
          }),
        },
      }),
      ...(options.dns && names && { dns: dnsWithEffects(options.dns, { tables: names, metrics, ...shared }) }),
      secrets: workloadSecrets({
        ...options,
        nodeId: nodeIdOf(options),
        log: log.scope('secrets'),
        turns,
        vault,
        counts,
        told,
        ...shared,
      }),
      ...(prepared &&
        patchesBootstrap(options) && { bootstrapPatches: patchesWithEffects(prepared, { way, patches, log }) }),
      xdsProxy: xdsProxyWithEffects(program, { activity: xds, names, told, way, ...shared, ...(kept && { kept }) }),
      ...(preparation && supervision(program, net, { preparation, verdict, xds })),
    },
  });
  return { machine, verdict };
}

/** What keeps an Envoy running: not made where none is to run, as what its bootstrap needs may not be there. */
function supervision(
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

function applicationProber({ status }: ProxyOptions, log: Logger): ApplicationProber {
  const { probes, destination, source, http2Probes: http2, keepsProbeConnections } = status;
  // Its own: what a probe leaves open must not keep others from a connection.
  const kept = keepsProbeConnections ? { kept: new Agent({ keepAlive: true, maxFreeSockets: 1 }) } : {};
  return new ApplicationProber(probes, { destination, source, http2, ...kept }, log.scope('probe'));
}

function dnsWithEffects(
  options: DnsOptions,
  { tables, metrics, ownership }: { tables: DnsTables; metrics: AgentMetrics; ownership?: Ownership },
) {
  const counts = new DnsCounts();
  metrics.withDns(counts);
  // A control plane that sends no names is no reason to answer none: until a table comes, others are asked for all of them.
  const environment = {
    options: { ...options, forwardBeforeTable: true },
    tables,
    counts,
    ...(ownership && { ownership }),
  };
  return dnsMachine.provide({ actors: { server: dnsServer(environment) } });
}

/** Names that an agent before this one was told: without them it would ask others for all, who do not know the mesh's. */
async function beginWithNames(names: DnsTables | undefined, kept: ToldFiles | undefined): Promise<void> {
  const table = names && kept?.read('name-table');
  // One that cannot be read is as none.
  if (table !== undefined) await names?.take(table).catch(() => {});
}

type WayToControlPlane = Pick<UpstreamEnvironment, 'discoveryAddress' | 'credentials' | 'headers'>;

function wayToControlPlane({ options, log }: AgentProgram, vault: SecretVault, told: ToldRoots): WayToControlPlane {
  const { config, env } = options;
  const credentials = new ControlPlaneCredentials({ config, env, own: () => vault.newestPair(identityName), told });
  const { headers, warnings } = xdsHeaders(env);
  for (const warning of warnings) log.warn(warning);
  const { discoveryAddress } = config;
  return { discoveryAddress, credentials: (shows) => credentials.read('xds', discoveryAddress, shows), headers };
}

function patchesWithEffects(
  { source, admin }: PrepareEnvironment,
  { way, patches, log }: { way: WayToControlPlane; patches: BootstrapPatches; log: Logger },
) {
  const bootstrap = () => ('bootstrap' in source ? source.bootstrap(admin.port, firstRun) : {});
  const ask = askForPatches({ ...way, patches, bootstrap, log: log.scope('bootstrap') });
  return bootstrapPatchesMachine.provide({ actors: { ask } });
}

/** Envoy's way to the control plane. */
function xdsProxyWithEffects(
  { options, log, traceLevel }: AgentProgram,
  {
    activity,
    names,
    told,
    way,
    ownership,
    kept,
  }: {
    activity: XdsActivity;
    names: DnsTables | undefined;
    told: ToldRoots;
    way: WayToControlPlane;
    ownership?: Ownership;
    kept?: ToldFiles;
  },
) {
  const { env, identity } = options;
  return workloadXds({
    ...way,
    ...(ownership && { ownership }),
    activity,
    log: log.scope('xds'),
    toldRoots: told,
    tellsRoutine: traceLevel === 'full',
    trustBundles: asksForRoots(env.PROXY_CONFIG_XDS_AGENT, identity.settings.source),
    ...(kept && {
      keptBundle: () => kept.read('trust-bundle'),
      keepBundle: (value) => kept.keep('trust-bundle', Buffer.from(value)),
    }),
    ...(names && {
      nameTables: async (table) => {
        await names.take(table);
        kept?.keep('name-table', table);
      },
    }),
  });
}

/**
 * A workload with a certificate of the authority is told by the control plane which roots to trust, before anybody has a certificate of
 * another one; its acknowledgement is what a rotation of the root waits for (spec/identity.md §8).
 */
function asksForRoots(said: string | undefined, source: IdentitySettings['source']): boolean {
  return said ? isOn(said) : source === 'authority';
}

function adminOf({ addresses, config }: ProxyOptions): PrepareEnvironment['admin'] {
  return { host: localAddresses(addresses).localhost, port: config.proxyAdminPort };
}

/** A bootstrap of the user's own may have any ports, or none. */
function servingPorts({ config, addresses, ...options }: ProxyOptions): ServingPorts {
  const { envoyStatusPort, envoyPrometheusPort } = options;
  const own = config.statusPort === 0 ? [envoyPrometheusPort] : [envoyStatusPort, envoyPrometheusPort];
  const port = config.customConfigFile ? undefined : own.find((one) => one !== 0);
  return { host: localAddresses(addresses).localhost, port };
}

function preparationOf(
  { options, log }: AgentProgram,
  { binaries }: SafetyNet,
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
    configPath: config.configPath,
    // A bootstrap of the user's own may have no control plane at all.
    discoveryAddress: 'bootstrap' in source ? config.discoveryAddress : undefined,
    certificates: options.watch.directories,
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
      probe: liveProbe({ adminAt, discoveryAddress, xds }),
      drainListeners: drainListeners({ adminAt, role: options.role }),
    },
    actions: {
      removeConfigFile: ({ context }) => {
        if (!('customConfigFile' in source)) removeQuietly(context.configFile, log);
      },
    },
  });
}

/** The run directory is there for every agent; another one may be writable where it is not. */
function scratchFolders(runDir: string, { configPath }: ProxyOptions['config']): ScratchParent[] {
  return [
    { path: resolve(runDir), flag: '--runDir' },
    { path: resolve(configPath), flag: '--configPath' },
    { path: tmpdir(), flag: 'TMPDIR' },
  ];
}

function removeQuietly(file: string, log: Logger): void {
  try {
    rmSync(file, { force: true });
  } catch (error) {
    log.warn(`${file} could not be removed`, { reason: messageOf(error) });
  }
}

function envoyFlags(options: ProxyOptions): EnvoyFlags {
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

/** The generated bootstrap differs by its admin port and the Envoy's name only: what is wrong with it is found before anything is started. */
function bootstrapSource(
  options: ProxyOptions,
  { hasCredentialServer, patches, log }: { hasCredentialServer: boolean; patches: BootstrapPatches; log: Logger },
): PrepareEnvironment['source'] {
  const { customConfigFile, proxyAdminPort } = options.config;
  if (customConfigFile) return { customConfigFile };
  // Without its root there is no way to the control plane.
  controlPlaneTls(options.config, options.env);
  const make = (adminPort: number, run: EnvoyRun) => agentBootstrap(options, { adminPort, run, hasCredentialServer });
  for (const warning of make(proxyAdminPort, firstRun).warnings) log.warn(warning);
  return { bootstrap: (adminPort, run) => patches.mergedInto(make(adminPort, run).bootstrap) };
}

function agentSettings({
  binary,
  options: { config, watch, identity, ...options },
  succeeds = false,
}: AgentProgram): AgentSettings {
  const { restartPolicy, hotRestart, exitOnZeroActiveConnections, minimumDrainMs } = options;
  return {
    ...defaultSettings,
    adminPort: config.proxyAdminPort,
    spareAdminPort: options.spareAdminPort,
    restartPolicy,
    hotRestart,
    exitOnZeroActiveConnections,
    minimumDrainMs,
    liveRestore: restoresLive({ ...options, config }),
    givesWay: givesWay({ ...options, config, identity }),
    succeeds,
    drainMs: config.drainDurationMs,
    // What Envoy is told: whole seconds.
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
    // A bootstrap of the user's own has its control plane from wherever it says.
    xdsSocket: config.customConfigFile ? '' : xdsSocketPath(config.configPath),
  };
}
