import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer as createNetServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { fromCallback } from 'xstate';
import type { QuitRequested, UpgradeRequested } from '../../../machines/agent/protocol.ts';
import { stoppingReason } from '../../../machines/agent/status/status.setup.ts';
import type {
  AdminUse,
  DrainRequested,
  EnvoyProbe,
  EnvoyResponded,
  ReadinessRespond,
  StatusHttpOrder,
  StatusHttpReport,
} from '../../../machines/agent/status-protocol.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { explainInOneLine, messageOf } from '../../runtime/errors.ts';
import { createFencedServer } from '../../runtime/fences/http-fence.ts';
import { type ProfileResponse, Profiler, profilingPath } from '../../runtime/profiler.ts';
import type { AccessRefusal, AccessRule } from '../../runtime/trace/debugger-access.ts';
import { tracePath } from '../../runtime/trace/trace-endpoint.ts';
import type { AdminClient } from '../admin/admin-client.ts';
import { whyNoApplicationPort } from '../admin/application-listeners.ts';
import { getRejectedListeners } from '../admin/refused-listeners.ts';
import { type ProbeResult, probeServingEnvoy, ServingProcess } from '../envoy/serving-envoy.ts';
import { keepTcpServer } from '../ports/kept-socket.ts';
import { listenProblem } from './listen-problem.ts';
import { MergedMetrics } from './merged-metrics.ts';
import { nameTableText } from './name-table-text.ts';
import { RepeatLimit } from './repeat-limit.ts';
import type { StatusServerEnvironment } from './status-environment.ts';

/** The response is valid until these times, which are extended each time that Envoy confirms it. */
interface CachedReadiness extends Pick<ReadinessRespond, 'heldMs' | 'listenersHeldMs'> {
  until: number;
  listenersUntil: number;
}

type EnvoyState = Pick<EnvoyResponded, 'by' | 'live' | 'detail'>;

export function statusServer(environment: StatusServerEnvironment) {
  return fromCallback<StatusHttpOrder, { port: number }>(({ input, sendBack, receive }) => {
    let isOpen = true;
    const endpoint = new StatusEndpoint(environment, (event) => {
      if (isOpen) sendBack(event);
    });
    endpoint.open(input.port);
    receive((order) => {
      if (order.type === 'admin.use') endpoint.useAdmin(order);
      else if (order.type === 'envoy.probe') void endpoint.probeEnvoy(order);
      else if (order.type === 'envoy.drain') void endpoint.drainEnvoy();
      else if (order.type === 'readiness.invalidate') endpoint.invalidateReadiness();
      else endpoint.respond(order);
    });
    return () => {
      isOpen = false;
      endpoint.close();
    };
  });
}

/** Missing readiness is a warning only after this time, which Istio's charts configure for kubelets. */
const expectedStartMs = 30_000;

class StatusEndpoint {
  readonly #environment: StatusServerEnvironment;
  readonly #report: (event: StatusHttpReport) => void;
  readonly #server: Server;
  /** Connections that this server closes; those of debuggers are not included. */
  readonly #sockets = new Set<Socket>();
  /** The port is opened when there is an Envoy to probe. */
  #deferredPort: number | undefined;
  /** Requests that arrive while the status actor decides share its response. */
  #pendingRequest: { readonly request: number; readonly responses: ServerResponse[] } | undefined;
  #cachedReadiness: CachedReadiness | undefined;
  readonly #mergedMetrics: MergedMetrics;
  readonly #profiler: Profiler;
  #admin: AdminClient;
  #servingProcess: ServingProcess | undefined;
  /** Name of the newest epoch when the serving one began to serve. */
  #servingEpoch: string | undefined;
  /** `undefined` before the serving epoch first listed its listeners. */
  #reportedListeners: string | undefined;
  /** Resolves when the rejected listeners of the serving epoch were reported, or the epoch did not respond. */
  #firstListenerCheck: Promise<unknown> = Promise.resolve();
  #lastRequestNumber = 0;
  #wasLastReady: boolean | undefined;
  #hasBeenReady = false;
  readonly #openedAt = performance.now();
  readonly #repeatLimit = new RepeatLimit();

  constructor(environment: StatusServerEnvironment, report: (event: StatusHttpReport) => void) {
    this.#environment = environment;
    this.#profiler = new Profiler(environment);
    this.#admin = environment.adminAt(environment.adminPort);
    this.#report = report;
    const { metrics, ports, log, applicationMetrics } = environment;
    this.#mergedMetrics = new MergedMetrics({
      ...{ metrics, localhost: ports.host, targets: applicationMetrics, log },
      adminPort: () => (environment.runsEnvoy ? this.#admin.port : undefined),
    });
    this.#server = createFencedServer((request, response) => this.#serve(request, response), {
      failed: (error, { method, target }) =>
        environment.log.error('http.requestFailed', { method, target, reason: messageOf(error) }),
    });
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** First tries to open a shared port exclusively, because opening it shared succeeds even if another process has it. */
  open(port: number): void {
    const { shares, host, kept } = this.#environment;
    if (shares === 'later') {
      this.#deferredPort = port;
      this.#report({ type: 'http.listening', port });
    } else if (shares === 'first' && kept?.isAfterAnother !== true) {
      const trial = createNetServer();
      trial.once('error', (error) => this.#report({ type: 'http.failed', reason: listenProblem(error, port) }));
      trial.listen({ port, host, exclusive: true }, () => trial.close(() => this.#listen(port)));
    } else this.#listen(port);
  }

  #listen(port: number, reportState?: 'already reported'): void {
    const { host, shares, kept } = this.#environment;
    this.#server.on('error', (error) => this.#report({ type: 'http.failed', reason: listenProblem(error, port) }));
    this.#server.on('listening', () => {
      const address = this.#server.address();
      const bound = typeof address === 'object' && address !== null ? address.port : port;
      this.#environment.access.onPortOpened(bound);
      this.#environment.trace?.onPortOpened(bound);
      kept?.keep('status', [keepTcpServer(this.#server)], {
        takeConnection: (connection) => this.#server.emit('connection', connection),
      });
      if (reportState === undefined) this.#report({ type: 'http.listening', port: bound });
    });
    this.#server.listen({ port, ...(host !== undefined && { host }), reusePort: shares !== undefined });
  }

  close(): void {
    this.#profiler.end();
    this.#respondToPending(503);
    this.#environment.kept?.release('status');
    this.#server.close();
    // Idle connections of probes would keep the process alive.
    setImmediate(() => {
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  invalidateReadiness(): void {
    this.#cachedReadiness = undefined;
  }

  respond({ request, ready, reason, heldMs, listenersHeldMs }: ReadinessRespond): void {
    if (this.#pendingRequest?.request !== request) return;
    const [until, listenersUntil] = [performance.now() + heldMs, performance.now() + listenersHeldMs];
    this.#cachedReadiness = ready && heldMs > 0 ? { until, listenersUntil, heldMs, listenersHeldMs } : undefined;
    const { log, metrics } = this.#environment;
    if (!ready) this.#logNotReady(reason);
    else if (this.#wasLastReady !== true) {
      log.info('readiness.ready');
      metrics.recordReady(performance.now());
    }
    this.#wasLastReady = ready;
    this.#hasBeenReady ||= ready;
    this.#respondToPending(ready ? 200 : 503);
  }

  #respondToPending(status: number): void {
    const { responses = [] } = this.#pendingRequest ?? {};
    this.#pendingRequest = undefined;
    for (const response of responses) send(response, status, '');
  }

  /** Before an Envoy serves, the chart has no information about it. */
  #startState(): string {
    const newestEpoch = this.#environment.newestEpoch();
    return newestEpoch === undefined ? 'no Envoy is running' : `${newestEpoch} is initializing`;
  }

  #logNotReady(reason: string): void {
    if (this.#wasLastReady !== false) this.#repeatLimit.reset('readiness');
    const isStarting = !this.#hasBeenReady && performance.now() - this.#openedAt < expectedStartMs;
    const event =
      reason === stoppingReason ? 'readiness.stopping' : isStarting ? 'readiness.pending' : 'readiness.lost';
    const { runsEnvoy } = this.#environment;
    const isUnserved = runsEnvoy && this.#servingProcess === undefined && reason !== stoppingReason;
    const fullReason = isUnserved ? `${reason}: ${this.#startState()}` : reason;
    if (this.#repeatLimit.isDue('readiness', `${event} ${fullReason}`))
      this.#environment.log.write({ event, reason: fullReason });
  }

  useAdmin({ baseId, adminPort, pid }: AdminUse): void {
    if (this.#deferredPort !== undefined) this.#listen(this.#deferredPort, 'already reported');
    this.#deferredPort = undefined;
    const { adminAt, log } = this.#environment;
    const { address } = this.#admin;
    this.#admin = adminAt(adminPort);
    if (this.#admin.address !== address) log.info('admin.moved', { address: this.#admin.address, baseId });
    this.#servingProcess = new ServingProcess(pid);
    this.#servingEpoch = this.#environment.newestEpoch();
    this.#reportedListeners = undefined;
    // Read the listeners before a child takes over the admin port. The next probe reports an error of this check.
    this.#firstListenerCheck = this.#checkListeners().catch(() => {});
  }

  async #checkListeners(): Promise<void> {
    const probedProcess = this.#servingProcess;
    const listeners = await getRejectedListeners(this.#admin);
    if (listeners === undefined || this.#servingProcess !== probedProcess) return;
    const listenersText = JSON.stringify(listeners);
    if (listenersText === this.#reportedListeners) return;
    this.#reportedListeners = listenersText;
    this.#report({ type: 'listeners.checked', listeners });
  }

  async drainEnvoy(): Promise<void> {
    const { drain, log } = this.#environment;
    const reason = await this.#admin
      .post(`/drain_listeners?${drain === 'inboundonly' ? 'inboundonly&' : ''}graceful&skip_exit`)
      .then(() => '', messageOf);
    if (reason === '') log.info('drain.ordered');
    else log.warn('drain.ordered.failed', { reason });
    this.#report({ type: 'drain.ordered', reason });
  }

  async probeEnvoy({ request, at }: EnvoyProbe): Promise<void> {
    const probedProcess = this.#servingProcess;
    const state = await this.#probeState(at);
    if (state === undefined) return;
    const isLive = state.by === 'admin' && state.live;
    const { application } = this.#environment;
    const unserved = isLive ? await whyNoApplicationPort(this.#admin, application).catch(explainInOneLine) : '';
    if (this.#servingProcess === probedProcess)
      this.#report({ type: 'envoy.responded', request, ...state, unserved: unserved ?? '' });
  }

  /** `undefined` if another Envoy has started serving since. Requests wait for the result, so an unexpected error means not live. */
  #probeState(probeTarget: EnvoyProbe['at'], checksListeners = true): Promise<EnvoyState | undefined> {
    const failedState = (error: unknown): EnvoyState => ({ by: 'agent', live: false, detail: explainInOneLine(error) });
    return this.#readState(probeTarget, checksListeners).catch(failedState);
  }

  async #readState(probeTarget: EnvoyProbe['at'], checksListeners: boolean): Promise<EnvoyState | undefined> {
    const probedProcess = this.#servingProcess;
    const result = await probeServingEnvoy(probeTarget, this.#admin, probedProcess, this.#environment.ports);
    const { by, live, detail } = result;
    if (this.#servingProcess === probedProcess && this.#servesNewest) this.#recordProbe(result);
    await this.#firstListenerCheck;
    if (checksListeners && by === 'admin' && live) await this.#checkListeners();
    if (this.#servingProcess !== probedProcess) return undefined;
    const problem = live ? this.#environment.certificateProblem?.() : undefined;
    return problem === undefined ? { by, live, detail } : { by: 'agent', live: false, detail: problem };
  }

  #recordProbe(result: ProbeResult): void {
    const { metrics, log } = this.#environment;
    const change = metrics.recordProbe(result);
    if (change === 'stopped responding') log.warn('envoy.unresponsive', { reason: result.detail });
    if (change === 'responds again') log.info('envoy.responsive');
  }

  /** Whether the serving epoch is the newest one. Otherwise, its child may have the admin port. */
  get #servesNewest(): boolean {
    return this.#environment.newestEpoch() === this.#servingEpoch;
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
        this.#order(request, response, { type: 'quit.requested' }, 'any local user');
        return;
      case '/drain':
        this.#order(request, response, { type: 'drain.requested' }, 'any local user');
        return;
      case '/upgrade':
        // The result is in the log and the metrics, because a check and a restart take seconds.
        this.#order(request, response, { type: 'upgrade.requested' }, 'token');
        return;
      case '/upgrade/agent':
        this.#orderReplacement(request, response);
        return;
      case '/debug/ndsz':
        this.#names(request, response);
        return;
      case tracePath:
        this.#trace(request, response);
        return;
      default:
        await this.#serveOtherPath(path, request, response);
    }
  }

  /** Probes arrive each second, so a valid cached response needs no event and only an occasional probe of Envoy. */
  #readiness(response: ServerResponse): void {
    const cachedReadiness = this.#cachedReadiness;
    if (this.#pendingRequest !== undefined) this.#pendingRequest.responses.push(response);
    else if (
      cachedReadiness !== undefined &&
      performance.now() < cachedReadiness.until &&
      this.#servingProcess?.isAlive === true
    )
      send(response, 200, '');
    else {
      const request = ++this.#lastRequestNumber;
      this.#pendingRequest = { request, responses: [response] };
      if (cachedReadiness === undefined) this.#report({ type: 'readiness.requested', request });
      else void this.#confirm(cachedReadiness, request);
    }
  }

  /** If anything changed, the status actor decides. */
  async #confirm(cachedReadiness: CachedReadiness, request: number): Promise<void> {
    const previousListeners = this.#reportedListeners;
    const checksListeners = performance.now() >= cachedReadiness.listenersUntil;
    const state = await this.#probeState('admin', checksListeners);
    if (this.#pendingRequest?.request !== request) return;
    if (
      this.#cachedReadiness === cachedReadiness &&
      state?.live === true &&
      this.#reportedListeners === previousListeners
    ) {
      cachedReadiness.until = performance.now() + cachedReadiness.heldMs;
      if (checksListeners) cachedReadiness.listenersUntil = performance.now() + cachedReadiness.listenersHeldMs;
      this.#respondToPending(200);
    } else {
      this.#cachedReadiness = undefined;
      this.#report({ type: 'readiness.requested', request });
    }
  }

  async #serveOtherPath(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { prober, profiling } = this.#environment;
    if (profiling && (path === profilingPath || path.startsWith(`${profilingPath}/`))) {
      this.#profile(path, request, response);
      return;
    }
    const probe = prober.probe(path);
    if (probe !== undefined) await prober.serve(path, probe, request, response);
    else if (/^\/app-(health|lifecycle)\//.test(path)) send(response, 400, `unknown application probe ${path}\n`);
    else send(response, 404, noSuchPath(path));
  }

  async #metrics(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Both ends must be loopback: traffic from outside is forwarded to the host's own address. Envoy's secure metrics listener connects by loopback.
    const { localAddress, remoteAddress } = request.socket;
    const isFromThisHost = isLoopback(localAddress) && isLoopback(remoteAddress);
    if (this.#environment.metricsForThisHost && !isFromThisHost) {
      send(response, 403, 'available only over loopback from this host\n');
      return;
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      send(response, 405, 'method must be GET or HEAD\n');
      return;
    }
    // Not awaited, because the scrape itself waits for Envoy. The probe never rejects.
    if (this.#servingProcess !== undefined && this.#servesNewest) void this.#probeState('admin', false);
    await this.#mergedMetrics.serve(request, response);
  }

  #trace(request: IncomingMessage, response: ServerResponse): void {
    const { trace } = this.#environment;
    if (trace === undefined) {
      send(response, 404, noSuchPath(tracePath));
      return;
    }
    const { method = 'GET', headers, socket, url = '' } = request;
    const result = trace.respond({ method, headers, peer: socket }, new URLSearchParams(url.split('?', 2)[1]));
    if ('stream' in result) {
      this.#sockets.delete(socket);
      result.stream(response);
    } else {
      response.writeHead(result.status, result.headers).end(result.body);
    }
  }

  /** No request names a file: only flags select what the agent runs. */
  #order(
    request: IncomingMessage,
    response: ServerResponse,
    event: QuitRequested | DrainRequested | UpgradeRequested,
    caller: 'any local user' | 'token',
  ): void {
    if (this.#isRefused(request, response, { methods: ['POST'], needsToken: caller === 'token' })) return;
    send(response, 200, 'OK');
    this.#report(event);
  }

  /** The result is in the log, as for SIGUSR2. */
  #orderReplacement(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isRefused(request, response, { methods: ['POST'] })) return;
    const { orderSuccessor, log } = this.#environment;
    if (orderSuccessor === undefined) {
      send(response, 409, 'agent upgrade requires LIVE_RESTORE=true in a container\n');
      return;
    }
    log.info('replacement.ordered');
    // Respond before this agent may exit.
    response.end('OK', orderSuccessor);
  }

  #names(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isRefused(request, response, { methods: ['GET', 'HEAD'] })) return;
    const names = this.#environment.names?.();
    response.writeHead(names === undefined ? 404 : 200, { 'content-type': 'application/json' });
    if (names === undefined) response.end('{}\n');
    else Readable.from(nameTableText(names)).pipe(response);
  }

  #profile(path: string, request: IncomingMessage, response: ServerResponse): void {
    const { method = 'GET', headers, socket, url = '' } = request;
    const query = new URLSearchParams(url.split('?', 2)[1]);
    const result = this.#profiler.respond({ method, path, headers, peer: socket, query });
    if ('stream' in result) result.stream(response);
    else response.writeHead(result.status, headersOf(result)).end(result.body);
  }

  /** Rejects requests that arrived through Envoy or from web pages, and unauthorized local users. */
  #isRefused(request: IncomingMessage, response: ServerResponse, rule: AccessRule): boolean {
    const { method = 'GET', headers, socket } = request;
    const refusal = this.#environment.access.refusalOf({ method, headers, peer: socket }, rule);
    if (refusal !== undefined) response.writeHead(refusal.status, refusal.headers).end(refusal.body);
    return refusal !== undefined;
  }
}

function headersOf(result: ProfileResponse | AccessRefusal): Readonly<Record<string, string>> {
  const contentType = 'contentType' in result ? result.contentType : undefined;
  return { ...('headers' in result && result.headers), 'content-type': contentType ?? 'text/plain' };
}

function noSuchPath(path: string): string {
  return `unknown path ${path}\n`;
}

function send(response: ServerResponse, status: number, body: string): void {
  response.statusCode = status;
  response.end(body);
}
