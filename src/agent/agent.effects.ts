import { Agent } from 'node:http';
import { fromPromise } from 'xstate';
import { agentMachine } from '../../machines/agent/agent.machine.ts';
import type { ClaimedIds } from '../../machines/agent/envoy/adoption.ts';
import { provesIdentity } from '../../machines/agent/settings.ts';
import { peerClaimText, peerVariable } from '../model/standard-metrics/peer-claim.ts';
import { withHintInMessage } from '../runtime/errors.ts';
import { FileTurns } from '../runtime/files/file-turns.ts';
import { chooseRunDir } from '../runtime/files/run-dir.ts';
import type { Logger } from '../runtime/output/log.ts';
import { Ownership } from '../runtime/ownership.ts';
import { packageVersion } from '../runtime/package-root.ts';
import { accessLogsWithEffects } from './access-logs/access-logs.effects.ts';
import { MeshMetrics } from './access-logs/mesh-metrics.ts';
import { ownWorkload } from './access-logs/own-workload.ts';
import { adminsAt } from './admin/admin-client.ts';
import type { AgentProgram } from './agent-program.ts';
import { adoptFromKilledAgent, patchesBootstrap } from './agent-upgrade/agent-replacement.ts';
import { predecessorWithEffects } from './agent-upgrade/predecessor.effects.ts';
import { successorWithEffects } from './agent-upgrade/successor.effects.ts';
import { nodeFacts } from './bootstrap/agent-bootstrap.ts';
import { bootstrapPatchesWithEffects, unpatchedBootstrap } from './bootstrap/bootstrap-patches.effects.ts';
import { BootstrapPatches } from './bootstrap/bootstrap-patches.ts';
import { FirstValidation } from './bootstrap/first-validation.ts';
import { grpcBootstrapWithEffects } from './bootstrap/grpc-bootstrap.effects.ts';
import { buildNode, nodeIdOf } from './bootstrap/node-metadata.ts';
import { adminOf, buildPrepareEnvironment, scratchFolders } from './bootstrap/preparation.ts';
import type { PrepareEnvironment } from './bootstrap/prepare-epoch.ts';
import { controlPlaneConnections, workloadXds } from './control-plane-connections.ts';
import { type DnsEnvironment, dnsWithEffects } from './dns/dns.effects.ts';
import { DnsCounts } from './dns/dns-counts.ts';
import type { DnsOptions } from './dns/dns-options.ts';
import { DnsTables } from './dns/dns-tables.ts';
import { parentDeathGuard, setprivGuard } from './envoy/parent-death.ts';
import { StoredFiles } from './envoy/record/stored-files.ts';
import type { ServingPorts } from './envoy/serving-envoy.ts';
import { isCredentialServerReachable } from './identity/credential-server.ts';
import { DistributedRoots } from './identity/distributed-roots.ts';
import { localAddresses } from './options/addresses.ts';
import type { ProxyOptions } from './options/options.ts';
import type { SafetyNet } from './safety-net.ts';
import { certificateDateProblem } from './secrets/certificate-dates.ts';
import { SecretCounts } from './secrets/secret-counts.ts';
import { SecretVault } from './secrets/secret-vault.ts';
import { secretsWithEffects } from './secrets/secrets.effects.ts';
import { signals } from './signals.ts';
import type { AgentMetrics } from './status/agent-metrics.ts';
import { ApplicationProber } from './status/application-prober.ts';
import type { RunningEpochs } from './status/running-epochs.ts';
import { statusWithEffects } from './status/status.effects.ts';
import { supervision } from './supervision.ts';
import { WasmCounts } from './wasm/wasm-counts.ts';
import type { XdsActivity } from './xds/xds-activity.ts';

export async function agentWithEffects(
  program: AgentProgram,
  safetyNet: SafetyNet,
  { metrics, xds, living }: { metrics: AgentMetrics; xds: XdsActivity; living: RunningEpochs },
) {
  const { options, log, access, trace } = program;
  const { config } = options;
  const admin = adminOf(options);
  const runDir = chooseRunDir(options.runDir, config.configPath);
  const probing = parentDeathGuard();
  const hasCredentialServer = await isCredentialServerReachable();
  const names = options.dns && new DnsTables(options.dns.workload);
  const fileTurns = new FileTurns();
  const vault = new SecretVault();
  const counts = new SecretCounts(vault);
  metrics.withSecrets(counts);
  const hasIdentity = provesIdentity(options.identity.settings);
  if (hasIdentity) metrics.withCertificate(() => counts.missingCertificate === undefined);
  const wasmCounts = new WasmCounts();
  metrics.withWasm(wasmCounts);
  const distributedRoots = new DistributedRoots();
  const { table, baseIds, binaries, record } = safetyNet;
  const storedFiles = record && new StoredFiles(record.directory);
  const patches = new BootstrapPatches(storedFiles);
  const credentialTurns = new FileTurns();
  const connections = controlPlaneConnections(program, { vault, distributedRoots, turns: credentialTurns });
  const prepareEnvironment = options.runsEnvoy
    ? buildPrepareEnvironment(program, safetyNet, {
        admin,
        guard: setprivGuard,
        turns: fileTurns,
        scratch: scratchFolders(runDir, config),
        hasCredentialServer,
        patches,
      })
    : undefined;
  // Validate while other components are created, but not for an adopted Envoy, which was already validated.
  const isFirstAgent = safetyNet.record?.exists !== true;
  const firstValidation = prepareEnvironment && isFirstAgent ? new FirstValidation(prepareEnvironment) : undefined;
  const preparation = prepareEnvironment && { ...prepareEnvironment, guard: await probing };
  const ownership = new Ownership(program.succeeds !== true);
  const requiredNames = patchesBootstrap(options) ? (['bootstrap-patches'] as const) : [];
  const passedOn = { table, baseIds, binaries, runDir, ownership, requiredNames, log: log.scope('agent') };
  const inheritance = record && storedFiles && { ...passedOn, record, storedFiles: storedFiles };
  await restoreNames(names, storedFiles);
  if (prepareEnvironment && patchesBootstrap(options)) await restorePatches(patches, prepareEnvironment, program);
  const { ports } = safetyNet;
  ownership.onAcquired(async () => ports?.listen());
  const sharedOptions = options.liveRestore ? { ownership } : {};
  const meshMetrics = options.standardMetrics && meshMetricsOf(program, hasCredentialServer);
  if (meshMetrics !== undefined) metrics.withMesh(meshMetrics);
  const machine = agentMachine.provide({
    actors: {
      signals: signals(safetyNet.signals),
      claimBaseIds: fromPromise<ClaimedIds, { succeeds: boolean }>(() =>
        withHintInMessage(async () => {
          if (program.succeeds) return { baseIds: [], sweptFiles: [] };
          const resumedIds = inheritance && (await adoptFromKilledAgent(inheritance));
          if (resumedIds !== undefined) return resumedIds;
          const { baseId, hotRestart, runsEnvoy } = options;
          if (!runsEnvoy) return { baseIds: [], sweptFiles: [] };
          const withSpare = hotRestart && !config.customConfigFile;
          const claimedIds = await safetyNet.baseIds.claim({
            runDir,
            withSpare,
            ...(baseId !== undefined && { baseId }),
          });
          safetyNet.record?.startRecording(claimedIds.baseIds, { binaries: safetyNet.binaries });
          return claimedIds;
        }),
      ),
      releaseBaseIds: fromPromise<void, { baseIds: number[]; keeps: boolean }>(async ({ input }) => {
        if (input.keeps) {
          safetyNet.baseIds.handOverAll();
          ports?.handOver();
          await ownership.leave();
          return;
        }
        await safetyNet.table.endAll();
        safetyNet.baseIds.release(input.baseIds);
      }),
      ...(inheritance && {
        predecessor: predecessorWithEffects(inheritance),
        successor: successorWithEffects(inheritance),
      }),
      status: statusWithEffects({
        adminAt: adminsAt(admin.host),
        adminPort: admin.port,
        runsEnvoy: options.runsEnvoy,
        metrics,
        ports: servingPorts(options),
        newestEpoch: () => living.newestName,
        prober: applicationProber(options, log),
        applicationMetrics: options.status.applicationMetrics,
        drain: options.role === 'sidecar' ? 'inboundonly' : 'all',
        access,
        profiling: options.status.profiling,
        heapSnapshots: options.status.heapSnapshots,
        metricsForThisHost: options.status.metricsForThisHost,
        certificateProblem: () => certificateDateProblem(vault, Date.now()),
        application: { ports: options.status.applicationPorts, addresses: options.addresses },
        ...(names && { names: () => names.names }),
        log: log.scope('status'),
        ...(options.liveRestore && { shares: program.succeeds ? ('later' as const) : ('first' as const) }),
        ...(ports && { kept: ports }),
        ...(options.liveRestore && { orderSuccessor: () => process.kill(process.ppid, 'SIGUSR2') }),
        ...(trace && { trace }),
      }),
      ...(options.dns &&
        names && { dns: dnsOf(options.dns, { tables: names, metrics, ...sharedOptions, ...(ports && { ports }) }) }),
      secrets: secretsWithEffects({
        ...options,
        nodeId: nodeIdOf(options),
        log: log.scope('secrets'),
        turns: fileTurns,
        credentialTurns,
        vault,
        counts,
        distributedRoots,
        ...sharedOptions,
      }),
      ...(meshMetrics && { accessLogs: accessLogsWithEffects({ metrics: meshMetrics, ...sharedOptions }) }),
      grpcBootstrap: grpcBootstrapWithEffects({ options, hasCredentialServer, log: log.scope('agent') }),
      ...(prepareEnvironment &&
        patchesBootstrap(options) && {
          bootstrapPatches: bootstrapPatchesWithEffects(prepareEnvironment, { way: connections, patches, log }),
        }),
      xdsProxy: workloadXds(program, {
        activity: xds,
        names,
        distributedRoots,
        way: connections,
        wasmCounts,
        ...sharedOptions,
        ...(storedFiles && { kept: storedFiles }),
      }),
      ...(preparation &&
        supervision(program, safetyNet, {
          preparation,
          firstValidation,
          probe: { xds, ...(hasIdentity && { missingCertificate: () => counts.missingCertificate }) },
        })),
    },
  });
  return { machine, firstValidation };
}

/** All workloads receive the same Envoy filters, so the filters read the workload's claim from an environment variable. */
function meshMetricsOf({ options, log }: AgentProgram, hasCredentialServer: boolean): MeshMetrics {
  const hasSecrets = provesIdentity(options.identity.settings);
  const workload = ownWorkload(buildNode(nodeFacts(options, { hasCredentialServer, hasSecrets })).node.metadata);
  process.env[peerVariable] = peerClaimText(workload);
  const reportedKeys = new Set<string>();
  return new MeshMetrics({
    localWorkload: workload,
    version: packageVersion(),
    limits: { maxLabelSets: options.standardMetrics!.maxLabelSets },
    onFolding: ({ metric, reason, limit }) => {
      if (reportedKeys.has(`${metric} ${reason}`)) return;
      reportedKeys.add(`${metric} ${reason}`);
      log.scope('metrics').warn('metrics.labelSetsExhausted', { metric, reason, limit });
    },
  });
}

function applicationProber({ status }: ProxyOptions, log: Logger): ApplicationProber {
  const { probes, destination, source, http2Probes: http2, keepsProbeConnections } = status;
  // A separate connection pool, so that connections kept open by probes do not block others.
  const agentOption = keepsProbeConnections
    ? { keepAliveAgent: new Agent({ keepAlive: true, maxFreeSockets: 1 }) }
    : {};
  return new ApplicationProber(probes, { destination, source, http2, ...agentOption }, log.scope('probe'));
}

function dnsOf(
  options: DnsOptions,
  {
    tables,
    metrics,
    ...shared
  }: { tables: DnsTables; metrics: AgentMetrics } & Pick<DnsEnvironment, 'ownership' | 'ports'>,
) {
  const counts = new DnsCounts();
  metrics.withDns(counts);
  // Forwards all queries without a name table of the control plane.
  return dnsWithEffects({ options: { ...options, forwardBeforeTable: true }, tables, counts, ...shared });
}

/** Uses the name table of the previous agent; without it, queries for mesh names would be forwarded. */
async function restoreNames(names: DnsTables | undefined, storedFiles: StoredFiles | undefined): Promise<void> {
  const table = names && storedFiles?.read('name-table');
  if (table !== undefined) await names?.load(table).catch(() => {});
}

/** If the patches are unusable, a newer agent exits and the older one continues. Other agents request the patches again. */
async function restorePatches(
  patches: BootstrapPatches,
  prepareEnvironment: PrepareEnvironment,
  { succeeds }: AgentProgram,
): Promise<void> {
  try {
    await patches.restore(unpatchedBootstrap(prepareEnvironment));
  } catch (error) {
    if (succeeds) throw error;
  }
}

/** A custom bootstrap may have any ports. */
function servingPorts({ config, addresses, ...options }: ProxyOptions): ServingPorts {
  const { envoyStatusPort, envoyPrometheusPort } = options;
  const ownPorts = config.statusPort === 0 ? [envoyPrometheusPort] : [envoyStatusPort, envoyPrometheusPort];
  const port = config.customConfigFile ? undefined : ownPorts.find((ownPort) => ownPort !== 0);
  return { host: localAddresses(addresses).localhost, port };
}
