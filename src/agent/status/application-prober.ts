/** Only the configuration selects host, port and scheme of a probe. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { messageOf } from '../../runtime/errors.ts';
import { defaultGrpcLimits, GrpcConnection, unary } from '../../runtime/grpc/grpc-client.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { AddressCounts } from './address-counts.ts';
import type { ApplicationProbe, ApplicationProbes } from './application-probes.ts';
import { type ProbeTransport, probeHttp } from './probe-http.ts';
import { RepeatLimit } from './repeat-limit.ts';

/** An address without a running probe is always served: otherwise other clients could block the kubelet, which would restart the application. */
const maxProbes = 64;
const maxProbesPerAddress = 16;
const maxHealthBytes = 4 * 1024;
const servingStatus = 1;

export class ApplicationProber {
  readonly #probes: ApplicationProbes;
  readonly #transport: ProbeTransport;
  readonly #log: Logger;
  readonly #repeatLimit = new RepeatLimit();
  readonly #runningCounts = new AddressCounts();

  constructor(probes: ApplicationProbes, transport: ProbeTransport, log: Logger) {
    this.#probes = probes;
    this.#transport = transport;
    this.#log = log;
  }

  probe(path: string): ApplicationProbe | undefined {
    return this.#probes.get(path);
  }

  /** Responds with the status only. Never rejects. */
  async serve(path: string, probe: ApplicationProbe, request: IncomingMessage, response: ServerResponse) {
    const address = request.socket.remoteAddress ?? '';
    const addressProbes = this.#runningCounts.countOf(address);
    if (addressProbes >= maxProbesPerAddress || (addressProbes > 0 && this.#runningCounts.totalCount >= maxProbes)) {
      response.writeHead(503).end('too many concurrent probes\n');
      return;
    }
    this.#runningCounts.increment(address);
    const status = await this.#statusOf(path, probe, request, response);
    this.#runningCounts.decrement(address);
    response.writeHead(status).end();
  }

  async #statusOf(
    path: string,
    probe: ApplicationProbe,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<number> {
    const limit = AbortSignal.timeout(probe.timeoutMs);
    const disconnectController = new AbortController();
    response.once('close', () => {
      if (!response.writableEnded) disconnectController.abort();
    });
    try {
      const caller = { rawHeaders: request.rawHeaders, userAgent: request.headers['user-agent'] };
      return await probeApplication(
        probe,
        caller,
        this.#transport,
        AbortSignal.any([limit, disconnectController.signal]),
      );
    } catch (error) {
      const reason = limit.aborted ? `no response within ${probe.timeoutMs} ms` : messageOf(error);
      if (!disconnectController.signal.aborted && this.#repeatLimit.isDue(path, reason))
        this.#log.warn('probe.applicationFailed', { path, reason });
      return 500;
    }
  }
}

export interface ProbeCaller {
  readonly rawHeaders: readonly string[];
  readonly userAgent: string | undefined;
}

/** Resolves with an HTTP status; rejects if the application does not respond. */
export async function probeApplication(
  probe: ApplicationProbe,
  { rawHeaders, userAgent }: ProbeCaller,
  transport: ProbeTransport,
  signal: AbortSignal,
): Promise<number> {
  if (probe.kind === 'http') return probeHttp(probe, rawHeaders, transport, signal);
  if (probe.kind === 'tcp') await requireConnection(probe.port, transport, signal);
  else await requireServing(probe, transport, userAgent, signal);
  return 200;
}

function requireConnection(port: number, { destination, source }: ProbeTransport, signal: AbortSignal): Promise<void> {
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

async function requireServing(
  { port, service, timeoutMs }: Extract<ApplicationProbe, { kind: 'grpc' }>,
  { destination, source }: ProbeTransport,
  userAgent: string | undefined,
  stopSignal: AbortSignal,
): Promise<void> {
  const target = { address: { host: destination, port, ...(source !== undefined && { localAddress: source }) } };
  const connection = await GrpcConnection.open(target, { ...defaultGrpcLimits, dialMs: timeoutMs }, stopSignal);
  try {
    const query = service === '' ? new Uint8Array() : new BinaryWriter().uint32(10).string(service).finish();
    const headers = userAgent === undefined ? {} : { 'user-agent': userAgent };
    const limits = { limitMs: timeoutMs, maxBytes: maxHealthBytes, stopped: stopSignal };
    const status = parseHealth(await unary(connection, '/grpc.health.v1.Health/Check', headers, query, limits));
    if (status !== servingStatus)
      throw new Error(`gRPC health status must be SERVING, got ${healthStatuses[status] ?? status}`);
  } finally {
    connection.close();
  }
}

const healthStatuses = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'];

/** `HealthCheckResponse.status`, field 1. */
function parseHealth(response: Uint8Array): number {
  const reader = new BinaryReader(response);
  let status = 0;
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 1 && type === 0) status = reader.int32();
    else reader.skip(type);
  }
  return status;
}
