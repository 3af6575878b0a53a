/** `node test/bench/reconnect.ts`: proxies reconnect after a restart of the control plane; see the usage. */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createAuthority } from '../certs/authority.ts';
import { freePorts } from '../harness/free-ports.ts';
import { type FleetPlan, nowMs } from '../sidecars/fleet.ts';
import { FleetProcess } from '../sidecars/fleet-process.ts';
import type { ClientTls } from '../sidecars/http2-stream.ts';
import { exitWith, integerFlag, print } from './bench-run.ts';
import { cpuTimeMs } from './cpu-time.ts';
import { type Programs, runWithPrograms } from './programs.ts';
import { Crowd } from './push/crowd.ts';
import { BenchMesh, endpointsPerService, markOf } from './push/mesh-files.ts';
import { type PilotServer, startPilot, waitForPort } from './push/servers.ts';
import { quantileOf } from './statistics.ts';

const usage = `Usage: node test/bench/reconnect.ts [--streams N] [--services N] [--tls] [--resume] [--stop kill|order] [--rounds N]
                                    [--dial MS] [--rate N] [--pilot FILE]

Stops bin/pilot-discovery while N simulated sidecars are connected (delta, each from an address of its own), starts it again at once, and
prints for each round: time from the open port until half of the streams and all of them have their configuration, refused attempts (the
port was open, and the attempt failed or timed out) with their share of all attempts, attempts while no port was open, processor time of
the server, time of pushes to 10 sidecars of a namespace of their own that reconnect first (p50, p99, before and while the others
reconnect), and the load average of the machine. The processes of the N sidecars have a lower priority than the server. Back-off of the
sidecars: Envoy's. The last line has the figures as JSON.

  --streams N    default 5000
  --services N   default 200
  --tls          TLS with client certificates
  --resume       clients resume their TLS sessions
  --stop HOW     kill (default) or order: SIGKILL or SIGTERM
  --rounds N     default 1
  --dial MS      limit of a client for connection, handshake and the first byte of the server, default 20000
  --rate N       PILOT_MAX_REQUESTS_PER_SECOND; default: not set
  --pilot FILE   another pilot-discovery than the one in bin/

Exit code 1 if a goal is missed and --goals is given: all streams within --goals SECONDS, less than 5 % refused attempts, p99 of pushes
less than 50 ms longer.
`;

/** Real proxies run on other machines, so simulated ones must not take processor time from the server and the probes. */
const crowdPriority = 10;
const probes = 10;
const probeNamespace = 'probe';
const betweenPushesMs = 100;
const pushesBefore = 60;
const maxRefusedShare = 0.05;
const maxPushGrowthMs = 50;

const { values } = parseArgs({
  options: {
    streams: { type: 'string' },
    services: { type: 'string' },
    tls: { type: 'boolean', default: false },
    resume: { type: 'boolean', default: false },
    stop: { type: 'string', default: 'kill' },
    rounds: { type: 'string' },
    dial: { type: 'string' },
    rate: { type: 'string' },
    pilot: { type: 'string' },
    goals: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});

interface Round {
  readonly halfMs: number;
  readonly allMs: number;
  readonly refused: number;
  readonly refusedShare: number;
  readonly portClosed: number;
  readonly downMs: number;
  readonly cpuMs: number;
  readonly pushBeforeMs: { readonly p50: number; readonly p99: number };
  readonly pushDuringMs: { readonly p50: number; readonly p99: number; readonly count: number };
  readonly load: number;
  readonly reasons: Readonly<Record<string, number>>;
}

/** The service that only the probes import. */
const probeService = (mark: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: probe, namespace: ${probeNamespace}}
spec:
  hosts: [probe.${probeNamespace}.svc.cluster.local]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  location: MESH_INTERNAL
  resolution: STATIC
  exportTo: ['.']
  endpoints:
  - {address: ${mark}}
`;

async function measure(programs: Programs): Promise<Round[]> {
  const streams = integerFlag('streams', values.streams, 5_000);
  const services = integerFlag('services', values.services, 200);
  const dialMs = integerFlag('dial', values.dial, 20_000);
  const mesh = new BenchMesh(join(programs.root, 'mesh'), {
    services,
    endpoints: endpointsPerService,
    flavor: 'istio',
  });
  const probeFile = join(mesh.configDirectory, 'probe.yaml');
  let marks = 100_000;
  writeFileSync(probeFile, probeService(markOf(marks)));
  const [grpc, http, monitoring, securePort] = await freePorts(4);
  const { args, tls } = values.tls ? secured(programs.root, securePort!) : { args: [], tls: undefined };
  const start = (rate: string | undefined): Promise<PilotServer> =>
    startPilot(programs, mesh, {
      ...{ debounce: '1ms', ports: [grpc!, http!, monitoring!], args, executable: values.pilot },
      env: { PILOT_MAX_REQUESTS_PER_SECOND: rate },
    });
  const portOf = (server: PilotServer): PilotServer => ({ ...server, port: values.tls ? securePort! : grpc! });
  // The first connects of sidecars are not measured.
  let server = portOf(await start('100000'));
  await waitForPort(server);
  const commonPlan: Partial<FleetPlan> = { dialMs, resumes: values.resume };
  const probe = new FleetProcess(programs.env);
  programs.onEnd(() => probe.end());
  await probe.ready();
  await probe.open({
    ...{ port: server.port, protocol: 'delta', sidecars: probes, firstNumber: 900_000, hasOwnAddresses: true },
    ...{ reconnects: true, namespace: probeNamespace, backOffMs: { first: 20, max: 40 }, ...commonPlan },
    ...(tls !== undefined && { tls: tls(probeNamespace) }),
  });
  const push = async (): Promise<number> => {
    const mark = markOf(++marks);
    let changedAtMs = 0;
    const acknowledgedAtMs = await probe.acknowledge(
      { kind: 'EDS', mark },
      () => {
        changedAtMs = nowMs();
        writeFileSync(probeFile, probeService(mark));
      },
      300_000,
    );
    return acknowledgedAtMs - changedAtMs;
  };
  const crowdPlan = { ...commonPlan, ...(tls !== undefined && { tls: tls('default') }) };
  const crowd = new Crowd(programs, server.port, crowdPlan, crowdPriority);
  for (let remaining = streams; remaining > 0; remaining -= 2_500) await crowd.grow(Math.min(remaining, 2_500));
  const rounds: Round[] = [];
  for (let round = 0; round < integerFlag('rounds', values.rounds, 1); round++) {
    const durationsBeforeStop = await pushes(push, (pushCount) => pushCount >= pushesBefore);
    let [stoppedAtMs, listensAtMs] = [0, 0];
    let isOver = false;
    let pushesDuringStop: Promise<number[]> = Promise.resolve([]);
    const { fullAtMs, attempts, reasons } = await crowd.returnAfter(async () => {
      stoppedAtMs = nowMs();
      await probe.returnAfter(async () => {
        if (values.stop === 'kill') process.kill(server.pid, 'SIGKILL');
        await server.stop();
        server = portOf(await start(values.rate));
        await waitForPort(server);
        listensAtMs = nowMs();
      }, 300_000);
      pushesDuringStop = pushes(push, () => isOver);
    });
    isOver = true;
    const cpuMs = cpuTimeMs(server.pid);
    const portClosed = Object.entries(reasons).reduce(
      (sum, [reason, n]) => sum + (reason.includes('ECONNREFUSED') ? n : 0),
      0,
    );
    const refusedCount = attempts - portClosed - streams;
    const [pushBefore, pushDuring] = [durationsBeforeStop, await pushesDuringStop];
    rounds.push({
      halfMs: quantileOf(fullAtMs, 0.5) - listensAtMs,
      allMs: fullAtMs.at(-1)! - listensAtMs,
      refused: refusedCount,
      refusedShare: refusedCount / (attempts - portClosed),
      portClosed,
      downMs: listensAtMs - stoppedAtMs,
      cpuMs,
      pushBeforeMs: { p50: quantileOf(pushBefore, 0.5), p99: quantileOf(pushBefore, 0.99) },
      pushDuringMs: {
        ...{ p50: quantileOf(pushDuring, 0.5), p99: quantileOf(pushDuring, 0.99), count: pushDuring.length },
      },
      load: loadavg()[0]!,
      reasons,
    });
    print(row(rounds.at(-1)!));
  }
  await crowd.end();
  await probe.end();
  await server.stop();
  return rounds;
}

async function pushes(push: () => Promise<number>, isEnough: (done: number) => boolean): Promise<number[]> {
  const times: number[] = [];
  do {
    times.push(await push());
    await sleep(betweenPushesMs);
  } while (!isEnough(times.length));
  return times.toSorted((a, b) => a - b);
}

function secured(root: string, port: number) {
  const authority = createAuthority();
  const server = authority.issue(['localhost', '127.0.0.1']);
  const tls = (namespace: string): ClientTls => {
    const { certificate: chain, privateKey: key } = authority.issue([
      `spiffe://cluster.local/ns/${namespace}/sa/default`,
    ]);
    return { ca: authority.certificate, serverName: 'localhost', certificate: { chain, key } };
  };
  const files = { ca: authority.certificate, cert: server.certificate, key: server.privateKey };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, `${name}.pem`), text);
  const file = (name: string): string => join(root, `${name}.pem`);
  return {
    args: [
      ...['--secureGRPCAddr', `127.0.0.1:${port}`, '--caCertFile', file('ca')],
      ...['--tlsCertFile', file('cert'), '--tlsKeyFile', file('key')],
    ],
    tls,
  };
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

function row({ halfMs, allMs, refused, refusedShare, portClosed, downMs, cpuMs, load, ...round }: Round): string {
  const { pushBeforeMs: beforeStop, pushDuringMs: during, reasons } = round;
  return (
    `  half ${seconds(halfMs)}, all ${seconds(allMs)}; refused ${refused} (${(refusedShare * 100).toFixed(1)} %), ` +
    `port closed for ${seconds(downMs)}: ${portClosed} attempts; CPU ${seconds(cpuMs)}; pushes ` +
    `${beforeStop.p50.toFixed(0)}/${beforeStop.p99.toFixed(0)} ms before, ${during.p50.toFixed(0)}/${during.p99.toFixed(0)} ms ` +
    `during (${during.count}); load ${load.toFixed(1)}; ${JSON.stringify(reasons)}`
  );
}

function missedGoals(rounds: readonly Round[]): string[] {
  if (values.goals === undefined) return [];
  const goalMs = Number(values.goals) * 1_000;
  const median = quantileOf(
    rounds.map(({ allMs }) => allMs).toSorted((a, b) => a - b),
    0.5,
  );
  return [
    ...(median > goalMs ? [`all streams after ${seconds(median)}, goal ${seconds(goalMs)}`] : []),
    ...rounds.flatMap(({ refusedShare, pushBeforeMs, pushDuringMs }) => [
      ...(refusedShare >= maxRefusedShare ? [`refused ${(refusedShare * 100).toFixed(1)} % of the attempts`] : []),
      ...(pushDuringMs.p99 - pushBeforeMs.p99 >= maxPushGrowthMs ? [`p99 of pushes ${pushDuringMs.p99} ms`] : []),
    ]),
  ];
}

if (values.help) print(usage);
else {
  await exitWith(async () => {
    let rounds: Round[] = [];
    const errors = await runWithPrograms(async (programs) => {
      rounds = await measure(programs);
    });
    const problems = [...errors, ...missedGoals(rounds)];
    for (const problem of problems) print(problem);
    print(JSON.stringify(rounds));
    return problems.length === 0 ? 0 : 1;
  });
}
