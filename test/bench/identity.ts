/**
 * `npm run bench:identity`: signatures of the authority per second, their effect on pushes to sidecars, the simultaneous reconnect of all agents of a
 * mesh, and the cost of secrets for an agent; see the usage.
 */
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { create, toBinary } from '@bufbuild/protobuf';
import { issueToken, localTokenKey } from '../../src/discovery/xds/access/local-tokens.ts';
import { IstioCertificateRequestSchema } from '../../src/gen/istio/v1/auth/ca_pb.ts';
import { createRequest } from '../../src/identity/certificate-request.ts';
import { freePorts } from '../harness/free-ports.ts';
import { FleetProcess } from '../sidecars/fleet-process.ts';
import { exitWith, integerFlag, print } from './bench-run.ts';
import { cpuTimeMs } from './cpu-time.ts';
import { measureAgent } from './identity/agent-secrets.ts';
import { type CertificateResult, FakeAgent } from './identity/fake-agent.ts';
import { goalsOf, type IdentityFigures } from './identity/identity-figures.ts';
import { type Programs, runWithPrograms } from './programs.ts';
import { BenchMesh, endpointsPerService } from './push/mesh-files.ts';
import { changeOnce } from './push/push-run.ts';
import { type PilotServer, startPilot, waitForPort } from './push/servers.ts';
import { medianOf, quantileOf } from './statistics.ts';

const usage = `Usage: npm run bench:identity -- [--quick] [--seconds N] [--proxies N] [--changes N] [--agents N] [--pilot FILE]

Starts bin/pilot-discovery with a new authority, and agents that request certificates (P-256) with tokens; then bin/pilot-agent with
an Envoy. The last line has all figures as JSON.

  --quick       a small size, to check that it runs
  --seconds N   duration of signing at full speed, default 10
  --proxies N   proxies that receive pushes during that time, default 300
  --changes N   endpoint changes, without and with concurrent signing, default 20 each
  --agents N    agents that reconnect at once, default 1000
  --streams N   streams that request the certificate of pilot-agent, default 500
  --pilot FILE  replaces bin/pilot-discovery

Exit code 1 if an agent failed, a process or file was left behind, or a goal was missed (identity/identity-figures.ts: 500 certificates per second,
50 ms added to the p99 of pushes, a minute for reconnecting agents, 5 ms for a secret, 70 MiB for an agent). Goals are for two otherwise idle
cores; with --quick they are only printed.
`;

/** Number of connections that request at full speed, and concurrent requests of each: below the queue's limit per client. */
const busyAgents = 32;
const concurrentRequests = 4;
const serverName = 'istiod.istio-system.svc';

interface Authority {
  readonly server: PilotServer;
  readonly securePort: number;
  readonly directory: string;
}

async function startAuthority(programs: Programs, services: number, pilot: string | undefined): Promise<Authority> {
  const directory = join(programs.root, 'ca');
  const [securePort] = await freePorts(1);
  const mesh = new BenchMesh(join(programs.root, 'mesh'), {
    services,
    endpoints: endpointsPerService,
    flavor: 'istio',
  });
  const server = await startPilot(programs, mesh, {
    debounce: '10ms',
    executable: pilot,
    env: { SELF_SIGNED_CA_DIR: directory },
    args: ['--secureGRPCAddr', `127.0.0.1:${securePort}`],
  });
  await waitForPort(server);
  return { server, securePort: securePort!, directory };
}

/** Credentials of an agent: the roots that it trusts and the token that identifies it. */
async function credentialsOf({ directory }: Authority, i: number): Promise<{ roots: string; token: string }> {
  const chains = readdirSync(directory).filter((name) => name.endsWith('.chain'));
  const roots = chains.map((name) => readFileSync(join(directory, name), 'utf8')).join('');
  const account = { namespace: 'default', serviceAccount: `account-${i}`, audience: 'istio-ca', ttlSeconds: 3_600 };
  return { roots, token: await issueToken(localTokenKey(join(directory, 'token.key')), account, new Date()) };
}

async function agentsOf(authority: Authority, count: number): Promise<FakeAgent[]> {
  const csr = createRequest(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, []);
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const { roots, token } = await credentialsOf(authority, i);
      const message = create(IstioCertificateRequestSchema, { csr, metadata: { NodeID: `node-${i}` } });
      const request = toBinary(IstioCertificateRequestSchema, message);
      const localAddress = `127.1.${i >> 8}.${i & 255}`;
      return new FakeAgent({ port: authority.securePort, localAddress, roots, serverName, token, request });
    }),
  );
}

interface Load {
  readonly signed: number;
  readonly deferred: number;
  readonly failures: readonly string[];
  readonly ms: number;
}

/** Sends requests without delays until the returned function is called. */
function requestAtFullSpeed(agents: readonly FakeAgent[]): () => Promise<Load> {
  const startedAt = performance.now();
  const failures: string[] = [];
  let [signed, deferred, isOver] = [0, 0, false];
  const requestRepeatedly = async (agent: FakeAgent): Promise<void> => {
    while (!isOver) {
      const result = await agent.requestCertificate();
      if (isOver) return;
      if (result.is === 'signed') signed++;
      else if (result.is === 'failed') failures.push(result.reason);
      else {
        deferred++;
        await sleep(result.afterMs);
      }
    }
  };
  const all = agents.flatMap((agent) => Array.from({ length: concurrentRequests }, () => requestRepeatedly(agent)));
  return async () => {
    isOver = true;
    const ms = performance.now() - startedAt;
    await Promise.all(all);
    return { signed, deferred, failures, ms };
  };
}

/** @returns milliseconds until the agent has its certificate, and the number of attempts */
async function requestUntilSigned(agent: FakeAgent): Promise<{ ms: number; tries: number; refusalReason?: string }> {
  const startedAt = performance.now();
  for (let tries = 1; ; tries++) {
    const result: CertificateResult = await agent.requestCertificate();
    const ms = performance.now() - startedAt;
    if (result.is === 'signed') return { ms, tries };
    if (result.is === 'failed') return { ms, tries, refusalReason: result.reason };
    await sleep(result.afterMs);
  }
}

async function pushes(authority: Authority, fleet: FleetProcess, changes: number): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < changes; i++) samples.push((await changeOnce(authority.server, fleet, 'endpoint')).ackMs);
  return samples;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      proxies: { type: 'string' },
      changes: { type: 'string' },
      agents: { type: 'string' },
      streams: { type: 'string' },
      pilot: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) {
    process.stdout.write(usage);
    return 0;
  }
  const { quick, pilot } = values;
  const seconds = integerFlag('seconds', values.seconds, quick ? 2 : 10);
  const proxies = integerFlag('proxies', values.proxies, quick ? 20 : 300);
  const changes = integerFlag('changes', values.changes, quick ? 3 : 20);
  const count = integerFlag('agents', values.agents, quick ? 50 : 1_000);
  const streams = integerFlag('streams', values.streams, quick ? 20 : 500);
  const figures: { -readonly [name in keyof IdentityFigures]?: number } = {};
  const failures: string[] = [];
  const problems = await runWithPrograms(async (programs) => {
    const authority = await startAuthority(programs, quick ? 20 : 200, pilot);
    const { pid } = authority.server;
    const requestingAgents = await agentsOf(authority, busyAgents);
    // Starts threads and compiles code before the measurement.
    const warm = requestAtFullSpeed(requestingAgents);
    await sleep(1_000);
    failures.push(...(await warm()).failures);

    const cpuBefore = cpuTimeMs(pid);
    const stop = requestAtFullSpeed(requestingAgents);
    await sleep(seconds * 1_000);
    const load = await stop();
    failures.push(...load.failures);
    figures.certificatesPerSecond = (1_000 * load.signed) / load.ms;
    figures.serverCpuMsPerCertificate = (cpuTimeMs(pid) - cpuBefore) / load.signed;
    print(`signed ${load.signed} in ${(load.ms / 1_000).toFixed(1)} s, deferred: ${load.deferred}`);

    const fleet = new FleetProcess(programs.env);
    programs.onEnd(() => fleet.end());
    await fleet.open({ port: authority.server.port, protocol: 'delta', sidecars: proxies });
    await pushes(authority, fleet, 2);
    const unloadedPushes = await pushes(authority, fleet, changes);
    const stopRequests = requestAtFullSpeed(requestingAgents);
    const loadedPushes = await pushes(authority, fleet, changes);
    const signingLoad = await stopRequests();
    failures.push(...signingLoad.failures);
    figures.pushMs = medianOf(unloadedPushes);
    figures.pushP99Ms = quantileOf(unloadedPushes, 0.99);
    figures.pushBesideSigningMs = medianOf(loadedPushes);
    figures.pushBesideSigningP99Ms = quantileOf(loadedPushes, 0.99);
    figures.certificatesPerSecondBesidePushes = (1_000 * signingLoad.signed) / signingLoad.ms;
    for (const agent of requestingAgents) agent.close();

    const agents = await agentsOf(authority, count);
    const signingResults = await Promise.all(agents.map(requestUntilSigned));
    for (const agent of agents) agent.close();
    failures.push(...signingResults.flatMap(({ refusalReason: why }) => why ?? []));
    const times = signingResults.map(({ ms }) => ms);
    figures.agentsMedianMs = medianOf(times);
    figures.agentsLastMs = times.reduce((max, ms) => Math.max(max, ms), 0);
    figures.agentsToldToComeAgain = signingResults.filter(({ tries }) => tries > 1).length;
    await fleet.end();

    const { roots, token } = await credentialsOf(authority, 0);
    const agent = await measureAgent(programs, { securePort: authority.securePort, roots, token }, streams);
    figures.secretAnswerMs = medianOf(agent.responseMs);
    figures.secretAnswerP99Ms = quantileOf(agent.responseMs, 0.99);
    figures.agentRssMib = agent.rssMib;
    figures.agentRssAfterStreamsMib = agent.rssAfterStreamsMib;
  });
  for (const [name, value] of Object.entries(figures)) print(`${name}: ${value.toFixed(1)}`);
  const kinds = new Map<string, number>();
  for (const reason of failures) kinds.set(reason, (kinds.get(reason) ?? 0) + 1);
  for (const [reason, times] of kinds) print(`wrong: ${reason} (${times} times)`);
  for (const problem of problems) print(problem);
  const goals = problems.length > 0 ? [] : goalsOf(figures as IdentityFigures);
  for (const { figureName, expected, measured, isMet } of goals) {
    print(`${isMet ? 'met' : 'missed'}: ${expected} ${figureName}: ${measured.toFixed(1)}`);
  }
  print(JSON.stringify(figures));
  const isMissed = !quick && goals.some(({ isMet }) => !isMet);
  return failures.length + problems.length === 0 && !isMissed ? 0 : 1;
}

await exitWith(main);
