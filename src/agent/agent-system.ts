/** The agent: its statecharts with their effects, started, recorded, and cleaned up after whatever happens. */

import { Agent } from 'node:http';
import { type ActorRefFrom, type AnyActorRef, fromPromise, type SnapshotFrom } from 'xstate';
import { type AgentOutput, agentMachine } from '../../machines/agent/agent.machine.ts';
import { dnsMachine } from '../../machines/agent/dns/dns.machine.ts';
import { type ClaimedIds, knowledgeOf } from '../../machines/agent/envoy/adoption.ts';
import type { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { dueAfter, gaveWay, gaveWayWith, isDueOrder } from '../../machines/agent/replacement/due-orders.ts';
import { statusMachine } from '../../machines/agent/status/status.machine.ts';
import { startRoot, whenDone } from '../runtime/actors/actor-system.ts';
import { logRecords } from '../runtime/actors/log-records.ts';
import { inOneLine } from '../runtime/errors.ts';
import { catchUncaught, faultLog } from '../runtime/fences/uncaught.ts';
import { FileTurns } from '../runtime/files/file-turns.ts';
import { chooseRunDir } from '../runtime/files/run-dir.ts';
import type { Logger } from '../runtime/output/log.ts';
import { Ownership } from '../runtime/ownership.ts';
import { redactor } from '../runtime/trace/redact.ts';
import { Ending } from '../runtime/verdicts/ending.ts';
import { adminsAt } from './admin/admin-client.ts';
import { type AgentProgram, agentSettings } from './agent-program.ts';
import { patchesBootstrap, resumeWhatRuns, succession } from './agent-replacement.ts';
import { BootstrapPatches } from './bootstrap/bootstrap-patches.ts';
import { FirstVerdict } from './bootstrap/first-verdict.ts';
import { nodeIdOf } from './bootstrap/node-metadata.ts';
import { adminOf, preparationOf, scratchFolders } from './bootstrap/preparation.ts';
import type { PrepareEnvironment } from './bootstrap/prepare-epoch.ts';
import { patchesWithEffects, unpatched, wayToControlPlane, xdsProxyWithEffects } from './control-plane-way.ts';
import { DnsCounts } from './dns/dns-counts.ts';
import { type DnsEnvironment, dnsServer } from './dns/dns-effect.ts';
import type { DnsOptions } from './dns/dns-options.ts';
import { DnsTables } from './dns/dns-tables.ts';
import { parentDeathGuard, usualGuard } from './envoy/parent-death.ts';
import type { AgentRecord } from './envoy/record/agent-record.ts';
import { ToldFiles } from './envoy/record/told-files.ts';
import type { ServingPorts } from './envoy/serving-envoy.ts';
import { credentialServerAnswers } from './identity/credential-server.ts';
import { ToldRoots } from './identity/told-roots.ts';
import { localAddresses } from './options/addresses.ts';
import type { ProxyOptions } from './options/options.ts';
import { requireFolders } from './options/requirements.ts';
import { SafetyNet } from './safety-net.ts';
import { certificateDateProblem } from './secrets/certificate-dates.ts';
import { SecretCounts } from './secrets/secret-counts.ts';
import { SecretVault } from './secrets/secret-vault.ts';
import { workloadSecrets } from './secrets/workload-secrets.ts';
import { type SignalInbox, signals } from './signals.ts';
import { agentLog } from './status/agent-log.ts';
import { AgentMetrics } from './status/agent-metrics.ts';
import { agentStates } from './status/agent-states.ts';
import { ApplicationProber } from './status/application-prober.ts';
import { LivingEpochs } from './status/living-epochs.ts';
import { statusServer } from './status/status-server.ts';
import { supervision } from './supervision.ts';
import { XdsActivity } from './xds/xds-activity.ts';

/**
 * Runs the agent until it is told to end, or cannot go on.
 *
 * @returns the exit code, and what to tell the person
 * @throws ChartpilotError when what was configured cannot be done at all
 */
export async function runAgent(program: AgentProgram): Promise<AgentOutput> {
  const { options, log, recorder } = program;
  if (program.succeeds && !options.liveRestore) {
    return {
      exitCode: gaveWay,
      trouble: ['no agent of this container is replaced while it runs: LIVE_RESTORE is not in force'],
    };
  }
  for (const warning of options.warnings) log.write(warning);
  const { hotRestart, config } = options;
  const configPath = config.customConfigFile ? undefined : config.configPath;
  requireFolders({ runDir: chooseRunDir(options.runDir), configPath, hotRestart });
  const net = new SafetyNet(program);
  const { unknownOwners = [] } = net.record ?? {};
  if (unknownOwners.length > 0) {
    const directories = unknownOwners.join(', ');
    log.info('agent.recordsSkipped', { directories });
  }
  const xds = new XdsActivity();
  const metrics = new AgentMetrics(undefined, program.unwrittenLines, xds);
  metrics.identityIs(options.identity.settings);
  const openFence = lastFence(log, metrics);
  const stopLogging = logRecords(recorder, log.scope('agent'), {
    states: agentStates,
    entry: agentLog(),
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
      return { ...output, exitCode: exitCodeWith(output.exitCode, net.signals) };
    } finally {
      verdict?.end();
      stopKeeping?.();
      actor.stop();
    }
  } finally {
    stopLogging();
    stopFollowing();
    const left = await net.cleanUp();
    for (const { pid, epoch } of left) log.error('envoy.leftover', { pid, epoch });
    // The last line, in the words of the debugger: what follows it is not from the agent.
    if (ending.sentence !== undefined) {
      const result = redactor()(ending.sentence);
      if (ending.isFailure) log.error('agent.failed', { result });
      else log.info('agent.exited', { result });
    }
    openFence();
  }
}

/** What was ordered since the charts are over is due as well. */
function exitCodeWith(exitCode: number, { heard, waiting }: SignalInbox): number {
  const due = dueAfter(exitCode);
  return due === undefined ? exitCode : gaveWayWith([...due, ...waiting.filter(isDueOrder)], heard);
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
  const report = faultLog(log, 'fault.uncaught');
  return catchUncaught((error, origin) => {
    metrics.errorEscaped(origin);
    report(error, { origin });
  });
}

async function agentWithEffects(
  program: AgentProgram,
  net: SafetyNet,
  { metrics, xds, living }: { metrics: AgentMetrics; xds: XdsActivity; living: LivingEpochs },
) {
  const { options, log, access, trace } = program;
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
  const { table, baseIds, binaries, record } = net;
  const kept = record && new ToldFiles(record.directory);
  const patches = new BootstrapPatches(kept);
  const credentialTurns = new FileTurns();
  const way = wayToControlPlane(program, { vault, told, turns: credentialTurns });
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
  const ownership = new Ownership(program.succeeds !== true);
  const needed = patchesBootstrap(options) ? (['bootstrap-patches'] as const) : [];
  const passedOn = { table, baseIds, binaries, runDir, ownership, needed, log: log.scope('agent') };
  const inheritance = record && kept && { ...passedOn, record, told: kept };
  await beginWithNames(names, kept);
  if (prepared && patchesBootstrap(options)) await beginWithPatches(patches, prepared, program);
  const { ports } = net;
  ownership.whenOurs(async () => ports?.listen());
  const shared = options.liveRestore ? { ownership } : {};
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
          ports?.letGo();
          await ownership.leave();
          return;
        }
        await net.table.endAll();
        net.baseIds.release(input.baseIds);
      }),
      ...(inheritance && succession(inheritance)),
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
        },
      }),
      ...(options.dns &&
        names && { dns: dnsWithEffects(options.dns, { tables: names, metrics, ...shared, ...(ports && { ports }) }) }),
      secrets: workloadSecrets({
        ...options,
        nodeId: nodeIdOf(options),
        log: log.scope('secrets'),
        turns,
        credentialTurns,
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

function applicationProber({ status }: ProxyOptions, log: Logger): ApplicationProber {
  const { probes, destination, source, http2Probes: http2, keepsProbeConnections } = status;
  // Probes have a connection pool of their own: what one leaves open must not keep others from a connection.
  const kept = keepsProbeConnections ? { kept: new Agent({ keepAlive: true, maxFreeSockets: 1 }) } : {};
  return new ApplicationProber(probes, { destination, source, http2, ...kept }, log.scope('probe'));
}

function dnsWithEffects(
  options: DnsOptions,
  {
    tables,
    metrics,
    ...shared
  }: { tables: DnsTables; metrics: AgentMetrics } & Pick<DnsEnvironment, 'ownership' | 'ports'>,
) {
  const counts = new DnsCounts();
  metrics.withDns(counts);
  // A control plane that sends no names is no reason to answer none: until a table comes, others are asked for all of them.
  const environment = {
    options: { ...options, forwardBeforeTable: true },
    tables,
    counts,
    ...shared,
  };
  return dnsMachine.provide({ actors: { server: dnsServer(environment) } });
}

/** Names that an agent before this one was told: without them it would ask others for all, who do not know the mesh's. */
async function beginWithNames(names: DnsTables | undefined, kept: ToldFiles | undefined): Promise<void> {
  const table = names && kept?.read('name-table');
  // A table that cannot be read counts as none.
  if (table !== undefined) await names?.take(table).catch(() => {});
}

/** A newer agent that cannot go on with what the older one was told ends, and the older one goes on. Any other asks once more. */
async function beginWithPatches(
  patches: BootstrapPatches,
  prepared: PrepareEnvironment,
  { succeeds }: AgentProgram,
): Promise<void> {
  try {
    await patches.begin(unpatched(prepared));
  } catch (error) {
    if (succeeds) throw error;
  }
}

/** A bootstrap of the user's own may have any ports, or none. */
function servingPorts({ config, addresses, ...options }: ProxyOptions): ServingPorts {
  const { envoyStatusPort, envoyPrometheusPort } = options;
  const own = config.statusPort === 0 ? [envoyPrometheusPort] : [envoyStatusPort, envoyPrometheusPort];
  const port = config.customConfigFile ? undefined : own.find((one) => one !== 0);
  return { host: localAddresses(addresses).localhost, port };
}
