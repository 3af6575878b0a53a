/** Compares what `explain` reports for every request with Envoy's access log (`test/explained/differences.ts`). */
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { configurationFor } from '../../../../src/discovery/explain/explain-command.ts';
import { readOfflineMesh } from '../../../../src/discovery/explain/offline-mesh.ts';
import { resolveDiscoveryOptions } from '../../../../src/discovery/options/discovery-options.ts';
import { explain } from '../../../../src/networking/explain/explain.ts';
import type { ProxyConfiguration } from '../../../../src/networking/explain/proxy-configuration.ts';
import type { Question } from '../../../../src/networking/explain/question.ts';
import { differencesOf, type Logged, logFormat } from '../../../explained/differences.ts';
import { eventually } from '../../../harness/eventually.ts';
import type { FeatureEnvoy } from './envoy.ts';
import type { ConnectTo, RequestTo } from './requests.ts';

export interface ExplainedOptions {
  readonly configDir: string;
  readonly meshConfigFile: string;
  readonly accessLog: string;
  readonly env: Readonly<Record<string, string>>;
  readonly envoys: ReadonlyMap<string, FeatureEnvoy>;
}

export type ExplainedRequest = (RequestTo & { readonly kind: 'http' }) | (ConnectTo & { readonly kind: 'tcp' });

interface Pending {
  readonly proxy: string;
  readonly requested: ExplainedRequest;
  readonly localPort: number;
}

export class Explained {
  readonly #options: ExplainedOptions;
  readonly #disagreements: string[] = [];
  #pending: Pending[] = [];
  #comparedCount = 0;
  /** Length of the log that was already compared: later connections may reuse a port. */
  #readOffset = 0;

  constructor(options: ExplainedOptions) {
    this.#options = options;
  }

  /** Additions to the mesh configuration. All Envoys of a mesh write to one file. */
  static meshConfig(accessLogFile: string): Record<string, string> {
    return { accessLogFile, accessLogEncoding: 'JSON', accessLogFormat: JSON.stringify(logFormat) };
  }

  requested(proxy: string, requested: ExplainedRequest, localPort: number): void {
    this.#pending.push({ proxy, requested, localPort });
  }

  /** Number of requests for which both results were compared. */
  get compared(): number {
    return this.#comparedCount;
  }

  /** Compares all requests since the last call. The current configuration must be the one that applied to them. */
  async compare(): Promise<void> {
    const pending = this.#pending;
    this.#pending = [];
    if (pending.length === 0) return;
    const { configDir, meshConfigFile: meshConfig, env } = this.#options;
    const mesh = await readOfflineMesh(resolveDiscoveryOptions({ registries: '', configDir, meshConfig }, env));
    const logEntries = await this.#loggedFor(pending);
    const configurations = new Map<string, ProxyConfiguration>();
    for (const one of pending) {
      const { node } = this.#options.envoys.get(one.proxy)!;
      const labels = (node.metadata.LABELS ?? {}) as Record<string, string>;
      const configuration =
        configurations.get(one.proxy) ?? configurationFor({ ...node, labels }, mesh.context).configuration;
      configurations.set(one.proxy, configuration);
      const line = logEntries.get(connectionOf(one));
      const explanation = explain(configuration, questionAbout(one));
      const differences = line === undefined ? ['Envoy logged nothing'] : differencesOf(explanation, line);
      this.#comparedCount++;
      for (const difference of differences) this.#disagreements.push(`${describe(one)}: ${difference}`);
    }
  }

  /** @throws Error if a result differed */
  conclude(): void {
    if (this.#disagreements.length > 0)
      throw new Error(`explain and Envoy disagree:\n${this.#disagreements.join('\n')}`);
  }

  /** Reads the last line of each connection; Envoy writes lines shortly after the response. */
  async #loggedFor(pending: readonly Pending[]): Promise<ReadonlyMap<string, Logged>> {
    let lines = new Map<string, Logged>();
    let end = this.#readOffset;
    const complete = (): boolean => {
      ({ lines, end } = readLog(this.#options.accessLog, this.#readOffset));
      return pending.every((one) => lines.has(connectionOf(one)));
    };
    // A request without a log line is reported. The deadline allows for a busy machine.
    await eventually('all requests are logged', complete, { everyMs: 20, deadlineMs: 30_000 }).catch(() => {});
    this.#readOffset = end;
    return lines;
  }
}

/** Identifies a connection by both ports, because a client may use the same local port for another listener. */
const connectionOf = ({ localPort, requested }: Pending): string => `${localPort} to ${requested.port}`;

const portOf = (address: unknown): string => String(address).split(':').at(-1)!;

/** Reads the complete lines from an offset on, by {@link connectionOf}, and the offset of their end. */
function readLog(file: string, startOffset: number): { lines: Map<string, Logged>; end: number } {
  if (!existsSync(file)) return { lines: new Map(), end: startOffset };
  const text = readFileSync(file, 'utf8');
  const completeLines = text.slice(startOffset).split('\n').slice(0, -1);
  const lines = completeLines.map((line) => JSON.parse(line) as Logged);
  return {
    lines: new Map(lines.map((line) => [`${portOf(line.remote)} to ${portOf(line.local)}`, line])),
    end: text.lastIndexOf('\n') + 1,
  };
}

function questionAbout({ requested, localPort }: Pending): Question {
  const { port, address = '127.0.0.1', tls } = requested;
  const http2 = requested.kind === 'http' && requested.http2 === true;
  const alpn = http2
    ? ['h2']
    : ((tls?.ALPNProtocols as string[] | undefined) ?? (requested.kind === 'http' ? ['http/1.1'] : []));
  return {
    direction: requested.inbound ? 'inbound' : 'outbound',
    destination: { address, port },
    source: { address: '127.0.0.1', port: localPort },
    ...(tls && { tls: { alpn, ...(tls.servername && { sni: tls.servername }), ...principalOf(tls.cert) } }),
    ...(requested.kind === 'http' && { http: httpQuestion(requested, http2) }),
  };
}

/** The SPIFFE ID of a certificate, else its first name, as policies match it. */
function principalOf(certificate: unknown): { readonly principal?: string } {
  if (typeof certificate !== 'string') return {};
  const names = new X509Certificate(certificate).subjectAltName?.split(', ') ?? [];
  const name = names.find((text) => text.startsWith('URI:')) ?? names[0];
  return name === undefined ? {} : { principal: name.replace(/^[^:]*:/, '') };
}

function httpQuestion(
  { port, address = '127.0.0.1', host, path = '/', method = 'GET', headers = {} }: RequestTo,
  http2: boolean,
) {
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    version: http2 ? ('HTTP/2' as const) : ('HTTP/1.1' as const),
    ...{ path, method, headers: lower },
    authority: lower.host ?? host ?? `${address}:${port}`,
  };
}

function describe({ proxy, requested, localPort }: Pending): string {
  const { host = '', method = 'GET', path = '/' } = requested.kind === 'http' ? requested : {};
  const sni = requested.tls?.servername ? ` SNI ${requested.tls.servername}` : '';
  return `${proxy}: ${requested.kind === 'http' ? `${method} ${host}${path}` : 'TCP'} to port ${requested.port}${sni} (from ${localPort})`;
}
