/**
 * Sends rewritten probes to the application (spec/agent.md §6.6). Only the configuration selects host, port and scheme; the caller's headers and
 * path and redirects cannot change them.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { messageOf } from '../../runtime/errors.ts';
import { defaultGrpcLimits, GrpcConnection, unary } from '../../runtime/grpc/grpc-client.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { AddressCounts } from './address-counts.ts';
import type { ApplicationProbe, ApplicationProbes } from './application-probes.ts';
import { type ProbeWay, probeHttp } from './probe-http.ts';
import { SaidLines } from './said-lines.ts';

/**
 * Limits of concurrent probes in total and per client address. An address without a running probe is always served: otherwise other clients
 * could block the kubelet, which would restart the application. Connections have a separate limit.
 */
const mostAtOnce = 64;
const mostOfAddress = 16;
const mostHealthBytes = 4 * 1024;
const serving = 1;

export class ApplicationProber {
  readonly #probes: ApplicationProbes;
  readonly #way: ProbeWay;
  readonly #log: Logger;
  readonly #said = new SaidLines();
  readonly #underWay = new AddressCounts();

  constructor(probes: ApplicationProbes, way: ProbeWay, log: Logger) {
    this.#probes = probes;
    this.#way = way;
    this.#log = log;
  }

  /** @returns undefined if no such probe is configured */
  probe(path: string): ApplicationProbe | undefined {
    return this.#probes.get(path);
  }

  /** Responds with the status only. Never rejects. */
  async serve(path: string, probe: ApplicationProbe, request: IncomingMessage, response: ServerResponse) {
    const address = request.socket.remoteAddress ?? '';
    const ofAddress = this.#underWay.of(address);
    if (ofAddress >= mostOfAddress || (ofAddress > 0 && this.#underWay.total >= mostAtOnce)) {
      response.writeHead(503).end('too many concurrent probes\n');
      return;
    }
    this.#underWay.enter(address);
    const status = await this.#statusOf(path, probe, request, response);
    this.#underWay.leave(address);
    response.writeHead(status).end();
  }

  async #statusOf(
    path: string,
    probe: ApplicationProbe,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<number> {
    const limit = AbortSignal.timeout(probe.timeoutMs);
    const left = new AbortController();
    response.once('close', () => {
      if (!response.writableEnded) left.abort();
    });
    try {
      const caller = { rawHeaders: request.rawHeaders, userAgent: request.headers['user-agent'] };
      return await askApplication(probe, caller, this.#way, AbortSignal.any([limit, left.signal]));
    } catch (error) {
      const reason = limit.aborted ? `no response within ${probe.timeoutMs} ms` : messageOf(error);
      if (!left.signal.aborted && this.#said.isDue(path, reason))
        this.#log.warn('probe.applicationFailed', { path, reason });
      return 500;
    }
  }
}

/** The client that sent the probe to this agent. */
export interface ProbeCaller {
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
  readonly userAgent: string | undefined;
}

/** @returns an HTTP status; rejects if the application does not respond */
export async function askApplication(
  probe: ApplicationProbe,
  { rawHeaders, userAgent }: ProbeCaller,
  way: ProbeWay,
  signal: AbortSignal,
): Promise<number> {
  if (probe.kind === 'http') return probeHttp(probe, rawHeaders, way, signal);
  if (probe.kind === 'tcp') await connects(probe.port, way, signal);
  else await isServing(probe, way, userAgent, signal);
  return 200;
}

function connects(port: number, { destination, source }: ProbeWay, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({
      host: destination,
      port,
      signal,
      ...(source !== undefined && { localAddress: source }),
    });
    socket.once('connect', () => {
      resolve();
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

async function isServing(
  { port, service, timeoutMs }: Extract<ApplicationProbe, { kind: 'grpc' }>,
  { destination, source }: ProbeWay,
  userAgent: string | undefined,
  stopped: AbortSignal,
): Promise<void> {
  const target = { address: { host: destination, port, ...(source !== undefined && { localAddress: source }) } };
  const connection = await GrpcConnection.open(target, { ...defaultGrpcLimits, dialMs: timeoutMs }, stopped);
  try {
    const question = service === '' ? new Uint8Array() : new BinaryWriter().uint32(10).string(service).finish();
    const headers = userAgent === undefined ? {} : { 'user-agent': userAgent };
    const limits = { limitMs: timeoutMs, maxBytes: mostHealthBytes, stopped };
    const status = healthIn(await unary(connection, '/grpc.health.v1.Health/Check', headers, question, limits));
    if (status !== serving)
      throw new Error(`gRPC health status must be SERVING, got ${healthStatuses[status] ?? status}`);
  } finally {
    connection.close();
  }
}

/** `HealthCheckResponse.ServingStatus`. */
const healthStatuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];

/** `HealthCheckResponse.status`, field 1. */
function healthIn(answer: Uint8Array): number {
  const reader = new BinaryReader(answer);
  let status = 0;
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 1 && type === 0) status = reader.int32();
    else reader.skip(type);
  }
  return status;
}
