/** The http effect of the status actor (spec/agent.md §6.1–6.3): the agent's own port. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { fromCallback } from 'xstate';
import type {
  AdminUse,
  EnvoyAnswered,
  EnvoyAsk,
  HttpFailed,
  HttpListening,
  QuitRequested,
  ReadinessAnswer,
  ReadinessAsked,
} from '../../../machines/agent/protocol.ts';
import { isSystemError, messageOf } from '../../runtime/errors.ts';
import { createFencedServer } from '../../runtime/http-fence.ts';
import type { Logger } from '../../runtime/log.ts';
import { isLoopback } from '../../runtime/loopback.ts';
import { type TraceEndpoint, tracePath } from '../../runtime/trace/trace-endpoint.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import type { AdminDirectory } from '../admin/admin-interfaces.ts';
import { LackingListeners } from '../admin/refused-listeners.ts';
import type { ProcessTable } from '../envoy/process-table.ts';
import { askServingEnvoy, type EnvoyRun, type ServingPorts } from '../envoy/serving-envoy.ts';
import type { AgentMetrics } from './agent-metrics.ts';

export interface StatusServerEnvironment {
  readonly admins: AdminDirectory;
  readonly metrics: AgentMetrics;
  /** Where else than at its admin interface the serving Envoy can be asked. */
  readonly ports: ServingPorts;
  /** The Envoys that run. */
  readonly table: Pick<ProcessTable, 'list'>;
  readonly log: Logger;
  /** Absent: the trace is not offered. */
  readonly trace?: TraceEndpoint;
  /** All addresses unless said otherwise. */
  readonly host?: string;
}

type Report = HttpListening | HttpFailed | ReadinessAsked | EnvoyAnswered | QuitRequested;

/** Between two lines of the log that say the same of readiness: anybody may ask as often as they like. */
const sayAgainMs = 10_000;
const textFormat = 'text/plain; version=0.0.4; charset=utf-8';

export function statusServer(environment: StatusServerEnvironment) {
  return fromCallback<AdminUse | EnvoyAsk | ReadinessAnswer, { port: number }>(({ input, sendBack, receive }) => {
    let open = true;
    const endpoint = new StatusEndpoint(environment, (event) => {
      if (open) sendBack(event);
    });
    endpoint.listen(input.port);
    receive((order) => {
      if (order.type === 'admin.use') endpoint.useAdmin(order);
      else if (order.type === 'envoy.ask') void endpoint.askEnvoy(order);
      else endpoint.answer(order);
    });
    return () => {
      open = false;
      endpoint.close();
    };
  });
}

class StatusEndpoint {
  readonly #environment: StatusServerEnvironment;
  readonly #report: (event: Report) => void;
  readonly #server: Server;
  /** Connections that end with this server; those of debuggers last as long as the program. */
  readonly #sockets = new Set<Socket>();
  /** Readiness calls that wait for the status actor's word: who asks meanwhile waits for the same one. */
  #waiting: { readonly request: number; readonly responses: ServerResponse[] } | undefined;
  /** Envoy's metrics, while they are being asked for. */
  #scraping: Promise<Buffer> | undefined;
  /** That of the serving epoch. */
  #admin: AdminClient;
  #serving: EnvoyRun | undefined;
  readonly #listeners = new LackingListeners();
  /** Over when it is known what the serving epoch lacks, or that it does not say. */
  #firstLook: Promise<unknown> = Promise.resolve();
  #requests = 0;
  /** Undefined before the first answer. */
  #wasReady: boolean | undefined;
  #saidNotReady = { reason: '', at: Number.NEGATIVE_INFINITY };

  constructor(environment: StatusServerEnvironment, report: (event: Report) => void) {
    this.#environment = environment;
    this.#admin = environment.admins.first;
    this.#report = report;
    this.#server = createFencedServer((request, response) => this.#serve(request, response), {
      failed: (error, { method, target }) =>
        environment.log.error(`${method} ${target} failed`, { reason: messageOf(error) }),
    });
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  listen(port: number): void {
    const { host } = this.#environment;
    this.#server.on('error', (error) => this.#report({ type: 'http.failed', reason: listenProblem(error, port) }));
    this.#server.on('listening', () => {
      const address = this.#server.address();
      const bound = typeof address === 'object' && address !== null ? address.port : port;
      this.#environment.trace?.opened(bound);
      this.#report({ type: 'http.listening', port: bound });
    });
    this.#server.listen(host === undefined ? { port } : { port, host });
  }

  close(): void {
    this.#answerWaiting(503);
    this.#server.close();
    // Kept-alive connections of probes would hold the process; answers on their way are small and written already.
    setImmediate(() => {
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  answer({ request, ready, reason }: ReadinessAnswer): void {
    if (this.#waiting?.request !== request) return;
    const { log, metrics } = this.#environment;
    if (!ready) this.#sayNotReady(this.#serving === undefined ? `${reason}: ${this.#underWay()}` : reason);
    else if (this.#wasReady !== true) {
      log.info('ready');
      metrics.ready(performance.now());
    }
    this.#wasReady = ready;
    this.#answerWaiting(ready ? 200 : 503);
  }

  #answerWaiting(status: number): void {
    const { responses = [] } = this.#waiting ?? {};
    this.#waiting = undefined;
    for (const response of responses) send(response, status, '');
  }

  /** Before one has served. The chart is told of an Envoy when it serves; whether one is on its way the process table knows. */
  #underWay(): string {
    const newest = this.#environment.table.list().at(-1);
    return newest === undefined ? 'none runs' : `epoch-${newest.epoch} is initializing`;
  }

  #sayNotReady(reason: string): void {
    const now = performance.now();
    const isKnown = this.#wasReady === false && this.#saidNotReady.reason === reason;
    if (isKnown && now - this.#saidNotReady.at < sayAgainMs) return;
    this.#saidNotReady = { reason, at: now };
    this.#environment.log.warn('not ready', { reason });
  }

  useAdmin({ epoch, baseId }: EnvoyRun): void {
    const { admins, log } = this.#environment;
    const { address } = this.#admin;
    this.#admin = admins.of(baseId);
    if (this.#admin.address !== address)
      log.info(`Envoy's admin interface is at ${this.#admin.address} now`, { baseId });
    this.#serving = { epoch, baseId };
    this.#listeners.begin();
    // Nobody may ask before its child has the admin port.
    this.#firstLook = this.#listeners.look(this.#admin);
  }

  async askEnvoy({ request, at }: EnvoyAsk): Promise<void> {
    const asked = this.#serving;
    const run = asked ?? { epoch: 0, baseId: 0 };
    const { by, live, detail } = await askServingEnvoy(at, this.#admin, run, this.#environment.ports);
    await this.#firstLook;
    // While the admin port is another one's, what it said before counts.
    const refused = by === 'admin' && live ? await this.#listeners.look(this.#admin) : this.#listeners.problem;
    if (this.#serving !== asked) return;
    this.#report({ type: 'envoy.answered', request, by, live, detail, refused: refused ?? '' });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?', 1)[0]!;
    switch (path) {
      case '/healthz/ready':
        this.#readiness(response);
        return;
      case '/stats/prometheus':
      case '/metrics':
        await this.#metrics(request, response);
        return;
      case '/quitquitquit':
        this.#quit(request, response);
        return;
      case tracePath:
        this.#trace(request, response);
        return;
      default:
        send(response, 404, noSuchPath(path));
    }
  }

  #readiness(response: ServerResponse): void {
    if (this.#waiting !== undefined) {
      this.#waiting.responses.push(response);
      return;
    }
    const request = ++this.#requests;
    this.#waiting = { request, responses: [response] };
    this.#report({ type: 'readiness.asked', request });
  }

  /** A part that cannot be had is left out and counted, never an error (§6.4). */
  async #metrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      send(response, 405, 'GET only\n');
      return;
    }
    const { metrics } = this.#environment;
    metrics.scraped();
    this.#scraping ??= this.#envoyMetrics().finally(() => {
      this.#scraping = undefined;
    });
    const envoy = await this.#scraping;
    const own = Buffer.from(await metrics.text());
    response.writeHead(200, { 'content-type': textFormat, 'content-length': own.length + envoy.length });
    response.write(own);
    // The same bytes for all who ask at once: Envoy's may be megabytes.
    response.end(envoy);
  }

  async #envoyMetrics(): Promise<Buffer> {
    const { metrics, log } = this.#environment;
    try {
      const { status, body } = await this.#admin.get('/stats/prometheus');
      if (status === 200) return Buffer.from(body);
      throw new Error(`Envoy answers ${status}`);
    } catch (error) {
      metrics.scrapeFailed('envoy');
      log.warn("Envoy's metrics are missing", { reason: messageOf(error) });
      return Buffer.alloc(0);
    }
  }

  #trace(request: IncomingMessage, response: ServerResponse): void {
    const { trace } = this.#environment;
    if (trace === undefined) {
      send(response, 404, noSuchPath(tracePath));
      return;
    }
    const { method = 'GET', headers, socket, url = '' } = request;
    const answer = trace.answer({ method, headers, peer: socket }, new URLSearchParams(url.split('?', 2)[1]));
    if ('stream' in answer) {
      this.#sockets.delete(socket);
      answer.stream(response);
    } else {
      response.writeHead(answer.status, answer.headers).end(answer.body);
    }
  }

  #quit(request: IncomingMessage, response: ServerResponse): void {
    if (!isLoopback(request.socket.remoteAddress)) send(response, 403, 'only from this host\n');
    else if (request.method !== 'POST') send(response, 405, 'POST only\n');
    else {
      send(response, 200, 'OK');
      this.#report({ type: 'quit.requested' });
    }
  }
}

function noSuchPath(path: string): string {
  return `no such path: ${path}\n`;
}

function send(response: ServerResponse, status: number, body: string): void {
  response.statusCode = status;
  response.end(body);
}

function listenProblem(error: Error, port: number): string {
  if (isSystemError(error, 'EADDRINUSE')) {
    return `status port ${port} is in use: end the program that has it, or name another port with --statusPort (0: none)`;
  }
  if (isSystemError(error, 'EACCES')) return `status port ${port} may not be opened by this user: name another one`;
  return `status port ${port}: ${messageOf(error)}`;
}
