/** Compares explain with a real Envoy over one golden case, in a separate network namespace. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { explain } from '../../src/networking/explain/explain.ts';
import type { Explanation } from '../../src/networking/explain/explanation.ts';
import { listenerOf } from '../../src/networking/explain/listener-match.ts';
import type { RequestOutcome } from '../../src/networking/explain/outcome.ts';
import type { Question } from '../../src/networking/explain/question.ts';
import type { IssuedCertificate } from '../certs/authority.ts';
import { eventually } from '../harness/eventually.ts';
import { type RealEnvoy, startRealEnvoy } from '../networking/ads-envoy.ts';
import { startAdsStandIn } from '../networking/ads-stand-in.ts';
import { asJson, generate, readCase } from '../networking/case.ts';
import { type CaseCertificates, secretNames, secretOf, waitUntilSettled } from '../networking/envoy-acceptance.ts';
import { Draw } from '../random-config/draw.ts';
import { configurationOf, instrument } from './configuration.ts';
import { differencesOf, type Logged } from './differences.ts';
import { drawQuestion, isRedirected, TokenKeys } from './draw-question.ts';
import { redirect } from './namespace.ts';
import { send } from './send.ts';
import { wordsOf } from './words.ts';

export interface CaseResult {
  readonly name: string;
  readonly compared: number;
  /** Number of comparisons by kind of outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Number of undecided outcomes by the filter that `explain` reports. */
  readonly notDecided: Readonly<Record<string, number>>;
  readonly differences: readonly string[];
}

export interface CaseNetwork {
  readonly backendPort: number;
  readonly dnsPort: number;
  readonly certificates: CaseCertificates;
}

const maxConcurrent = 8;

type Listeners = ReturnType<typeof configurationOf>['listeners'];

interface SentRequest {
  readonly question: Question;
  readonly line: string;
  readonly isConnected: boolean;
}

export async function compareCase(
  name: string,
  { requests, seed }: { readonly requests: number; readonly seed: number },
  { backendPort, dnsPort, certificates }: CaseNetwork,
): Promise<CaseResult> {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-explained-'));
  const logFile = join(folder, 'access.log');
  const keys = new TokenKeys();
  const golden = readCase(name, certificates.directory);
  const resources = generate(golden);
  instrument(resources, logFile, keys);
  const configuration = configurationOf(resources);
  const words = wordsOf([...resources.listeners, ...resources.routes, ...resources.extensions].map(asJson));
  const draw = new Draw(seed);
  const proxyAddress = golden.proxy.ipAddresses[0] ?? '10.9.9.9';
  const questions = Array.from({ length: requests }, () =>
    drawQuestion({ draw, configuration, words, keys, proxyAddress }),
  );
  const secrets = secretNames(resources).map((secret) => secretOf(secret, certificates.issued, certificates.authority));
  redirect({ backendPort, dnsPort, clientsTo: undefined });
  const ads = await startAdsStandIn([...Object.values(resources).flat(), ...secrets]);
  const flags = ['--file-flush-interval-msec', '20'];
  const envoy = await startRealEnvoy(ads.port, golden.proxy, { flags });
  try {
    await waitUntilSettled(envoy, ads);
    await eventually('workers accept connections', () => isListening(envoy, resources.listeners.length), {
      everyMs: 20,
    });
    if (ads.refusals.length > 0) throw new Error(`${name}: ${ads.refusals.join('\n')}`);
    const sentRequests: SentRequest[] = [];
    for (const direction of ['outbound', 'inbound'] as const) {
      const clientsTo = redirectionPort(configuration.listeners, direction);
      redirect({ backendPort, dnsPort, clientsTo });
      sentRequests.push(
        ...(await sendAll(
          questions.filter((one) => one.direction === direction),
          configuration.listeners,
          certificates,
        )),
      );
    }
    const loggedLines = await readLines(logFile, sentRequests);
    return resultOf(name, sentRequests, (question) => explain(configuration, question), loggedLines);
  } finally {
    await envoy.stop();
    ads.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Workers open their sockets after the main thread has counted a listener as active. */
async function isListening(envoy: RealEnvoy, listeners: number): Promise<boolean> {
  const text = await envoy.admin('/stats?filter=listener_manager.listener_create_success');
  return Number(/: (\d+)/.exec(text)?.[1] ?? 0) >= listeners;
}

function redirectionPort(listeners: Listeners, direction: Question['direction']): number | undefined {
  const name = direction === 'inbound' ? 'virtualInbound' : 'virtualOutbound';
  const hostAddress = listeners.find((listener) => listener.name === name && isRedirected(listener))?.address?.address;
  const port = hostAddress?.case === 'socketAddress' ? hostAddress.value.portSpecifier : undefined;
  return port?.case === 'portValue' ? port.value : undefined;
}

function takesProxyProtocol(listeners: Listeners, question: Question): boolean {
  const filters = listenerOf(listeners, question)?.listener.listenerFilters ?? [];
  return filters.some(({ name }) => name === 'envoy.filters.listener.proxy_protocol');
}

async function sendAll(
  questions: readonly Question[],
  listeners: Listeners,
  { authority }: CaseCertificates,
): Promise<SentRequest[]> {
  const certificatesByHost = new Map<string, IssuedCertificate>();
  const remainingQuestions = [...questions];
  const sentRequests: SentRequest[] = [];
  const worker = async (): Promise<void> => {
    for (let question = remainingQuestions.shift(); question !== undefined; question = remainingQuestions.shift()) {
      const principal = question.tls?.principal;
      if (principal !== undefined && !certificatesByHost.has(principal))
        certificatesByHost.set(principal, authority.issue([principal]));
      const { isConnected } = await send(question, {
        certificate: principal === undefined ? undefined : certificatesByHost.get(principal),
        proxyProtocol: takesProxyProtocol(listeners, question),
      });
      const { source, destination } = question;
      const line = `${source!.address}:${source!.port} ${destination.address}:${destination.port}`;
      sentRequests.push({ question, line, isConnected });
    }
  };
  await Promise.all(Array.from({ length: maxConcurrent }, worker));
  return sentRequests;
}

interface Lines {
  readonly stream?: Logged;
  readonly connection?: Logged;
}

/** Log lines by client address and port. Each connection has a line after it has ended. */
async function readLines(file: string, sentRequests: readonly SentRequest[]): Promise<ReadonlyMap<string, Lines>> {
  const lines = new Map<string, Lines>();
  const complete = (): boolean => {
    lines.clear();
    for (const text of existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []) {
      const line = JSON.parse(text) as Logged & { readonly level: 'stream' | 'connection' };
      const key = `${String(line.remote)} ${String(line.local)}`;
      lines.set(key, { ...lines.get(key), [line.level]: line });
    }
    return sentRequests.every(({ line, isConnected }) => !isConnected || lines.get(line)?.connection !== undefined);
  };
  await eventually('all connections are logged', complete, { everyMs: 20, deadlineMs: 3_000 }).catch(() => {});
  return lines;
}

function resultOf(
  name: string,
  sentRequests: readonly SentRequest[],
  explained: (question: Question) => Explanation,
  loggedLines: ReadonlyMap<string, Lines>,
): CaseResult {
  const outcomes: Record<string, number> = {};
  const notDecided: Record<string, number> = {};
  const differences: string[] = [];
  for (const { question, line, isConnected } of sentRequests) {
    const explanation = explained(question);
    const { outcome } = explanation;
    outcomes[outcome.kind] = (outcomes[outcome.kind] ?? 0) + 1;
    for (const filter of undecidedBy(outcome)) notDecided[filter] = (notDecided[filter] ?? 0) + 1;
    const { stream, connection } = loggedLines.get(line) ?? {};
    const foundDifferences = differencesFrom(explanation, isConnected, stream ?? connection);
    for (const difference of foundDifferences) differences.push(`${questionText(question)}: ${difference}`);
  }
  return { name, compared: sentRequests.length, outcomes, notDecided, differences };
}

/** Returns at most one filter: of several weighted targets, the first undecided one. */
function undecidedBy(outcome: RequestOutcome): readonly string[] {
  if (outcome.kind === 'not decided') return [outcome.filter];
  return outcome.kind === 'divided' ? outcome.shares.flatMap((share) => undecidedBy(share.outcome)).slice(0, 1) : [];
}

function differencesFrom(explanation: Explanation, isConnected: boolean, line: Logged | undefined): string[] {
  if (line !== undefined) return differencesOf(explanation, line);
  if (!isConnected && explanation.outcome.kind === 'closed') return [];
  const reaction = isConnected ? 'logged nothing' : 'refused the connection';
  return [`outcome: explain reports ${JSON.stringify(explanation.outcome)}, Envoy ${reaction}`];
}

function questionText({ direction, destination, source, tls, http }: Question): string {
  const request =
    http && `${http.method} ${http.authority}${http.path} ${http.version} ${JSON.stringify(http.headers)}`;
  const encryption = tls && `TLS ${tls.sni ?? ''} ${tls.alpn.join()} ${tls.principal ?? ''}`;
  return [
    `${direction} ${source!.address} → ${destination.address}:${destination.port}`,
    encryption,
    request ?? 'bytes',
  ]
    .filter(Boolean)
    .join(', ');
}
