/** The charts of the xDS proxy with scripted effects under a virtual clock: a test plays the Envoys and the control plane. */
import { type Actor, type AnyEventObject, fromCallback, fromPromise, sendTo, setup } from 'xstate';
import { type HealthProbeResult, workloadHealthMachine } from '../../machines/agent/xds/workload-health.machine.ts';
import { type XdsProxyInput, xdsProxyMachine } from '../../machines/agent/xds/xds-proxy.machine.ts';
import { xdsStreamMachine } from '../../machines/agent/xds/xds-stream.machine.ts';
import type { StreamReport } from '../../machines/agent/xds-protocol.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from './virtual-clock.ts';

export interface ScriptedStream {
  readonly stream: number;
  readonly envoy: string;
  /** Whether its connection to the control plane is requested or open. */
  upstream: boolean;
  /** Whether Envoy's end is open. */
  downstream: boolean;
  /** The statuses with which it was ended. */
  readonly endStatuses: { code: string; reason: string }[];
  /** Certificates sent over its connections, empty if unknown; each connection begins with the known one. */
  readonly certificates: string[];
  /** Health of the workload as reported to the control plane; undefined: unknown, at the start of a connection. */
  readonly healthReports: (boolean | undefined)[];
  readonly bundleResponses: { hash: string; refusal: string }[];
}

export interface XdsMachines {
  readonly proxy: typeof xdsProxyMachine;
  readonly stream: typeof xdsStreamMachine;
}

const defaultMachines: XdsMachines = { proxy: xdsProxyMachine, stream: xdsStreamMachine };

export class XdsWorld {
  static readonly instances: XdsWorld[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  readonly streams: ScriptedStream[] = [];
  /** Times at which the control plane was dialed. */
  readonly dialTimes: number[] = [];
  /** The credentials presented in each dial. */
  readonly presentedCredentials: string[] = [];
  /** Events to the agent. */
  readonly reports: AnyEventObject[] = [];
  /** Why the workload cannot serve; empty if it can. */
  workload: () => string | Promise<string> = () => '';
  /** Virtual times of probes. */
  readonly probeTimes: number[] = [];
  /** Whether Envoy closes its stream after its end was sent. */
  closesAfterEnd = true;
  failure: unknown;
  readonly agent: Actor<ReturnType<XdsWorld['machine']>>;
  #sendServer: (event: AnyEventObject) => void = () => {};
  readonly #sendUpstream = new Map<number, (event: AnyEventObject) => void>();
  readonly #sendDownstream = new Map<number, (event: AnyEventObject) => void>();

  constructor(
    input: XdsProxyInput = { socket: '/run/XDS', hasSecrets: true, probe: null, proxyless: false },
    machines: XdsMachines = defaultMachines,
  ) {
    XdsWorld.instances.push(this);
    const recorder = createRecorder({ program: 'pilot-agent', now: () => this.clock.now() });
    recorder.observe((record) => this.records.push(record));
    this.agent = startRoot(this.machine(machines, input), {
      id: 'agent',
      input: undefined,
      recorder,
      clock: this.clock as never,
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  /** The parent of the proxy. */
  machine({ proxy, stream }: XdsMachines, input: XdsProxyInput) {
    const xdsProxy = proxy.provide({
      actors: {
        server: fromCallback<{ type: never }, { socket: string }>(({ sendBack }) => {
          this.#sendServer = sendBack;
          return () => {
            this.#sendServer = () => {};
          };
        }),
        workloadHealth: workloadHealthMachine.provide({
          actors: {
            probeWorkload: fromPromise<HealthProbeResult, { timeoutMs: number }>(async () => {
              this.probeTimes.push(this.clock.now());
              return { reason: await this.workload() };
            }),
          },
        }),
        stream: stream.provide({
          actors: {
            downstream: fromCallback(({ input: { stream: n }, sendBack, receive }) => {
              this.#sendDownstream.set(n, sendBack);
              receive(({ code, reason }) => {
                this.streamOf(n).endStatuses.push({ code, reason });
                if (this.closesAfterEnd) this.closeStream(n);
              });
              // A stream whose actor has stopped is closed.
              return () => {
                this.#sendDownstream.delete(n);
                this.streamOf(n).downstream = false;
              };
            }),
            upstream: fromCallback(({ input: { stream: n, credential, certificate, health }, sendBack, receive }) => {
              this.presentedCredentials.push(credential);
              this.#sendUpstream.set(n, sendBack);
              this.streamOf(n).upstream = true;
              this.dialTimes.push(this.clock.now());
              this.streamOf(n).certificates.push(certificate);
              this.streamOf(n).healthReports.push(health?.healthy);
              receive((order) => {
                if (order.type === 'certificate.report') this.streamOf(n).certificates.push(order.serialNumber);
                else if (order.type === 'health.report') this.streamOf(n).healthReports.push(order.healthy);
                else if (order.type === 'bundle.respond')
                  this.streamOf(n).bundleResponses.push({ hash: order.hash, refusal: order.refusal });
              });
              return () => {
                this.#sendUpstream.delete(n);
                this.streamOf(n).upstream = false;
              };
            }),
          },
        }),
      },
    });
    return setup({
      types: { events: {} as AnyEventObject },
      actors: {
        xdsProxy,
        secrets: fromCallback<AnyEventObject>(({ receive }) => receive((event) => void this.reports.push(event))),
      },
      actions: { pass: sendTo('xds-proxy', (_, params: { event: AnyEventObject }) => params.event as never) },
    }).createMachine({
      id: 'agent',
      invoke: [
        { id: 'secrets', src: 'secrets', systemId: 'secrets' },
        { id: 'xds-proxy', src: 'xdsProxy', systemId: 'xds-proxy', input },
      ],
      on: {
        order: { actions: { type: 'pass', params: ({ event }) => ({ event: event.event as AnyEventObject }) } },
        '*': { actions: ({ event }) => void this.reports.push(event) },
      },
    });
  }

  streamOf(stream: number): ScriptedStream {
    const matchingStream = this.streams.find((one) => one.stream === stream);
    if (matchingStream === undefined) throw new Error(`no stream ${stream}`);
    return matchingStream;
  }

  start(): void {
    this.sendOrder({ type: 'xds.start' });
    this.#sendServer({ type: 'socket.listening', socket: '/run/XDS' });
  }

  sendOrder(event: AnyEventObject): void {
    // Events about secrets come from actors that are not part of this world.
    const proxy = this.agent.getSnapshot().children['xds-proxy'] as Actor<typeof xdsProxyMachine>;
    if (event.type === 'trust-bundle.served' || event.type === 'certificate.served') proxy.send(event as never);
    else this.agent.send({ type: 'order', event });
  }

  /** The socket cannot be opened. */
  refuseSocket(reason: string): void {
    this.sendOrder({ type: 'xds.start' });
    this.#sendServer({ type: 'socket.failed', reason });
  }

  /** An Envoy opens a stream. @returns its number */
  openStream(envoy = '0@7', chance = 1): number {
    const stream = this.streams.length + 1;
    this.streams.push({
      stream,
      envoy,
      upstream: false,
      downstream: true,
      endStatuses: [],
      certificates: [],
      healthReports: [],
      bundleResponses: [],
    });
    this.#sendServer({ type: 'downstream.opened', stream, envoy, protocol: 'delta', chance });
    return stream;
  }

  /** Envoy closes its end. */
  closeStream(stream: number): void {
    this.streamOf(stream).downstream = false;
    this.#sendDownstream.get(stream)?.({ type: 'downstream.closed', reason: 'Envoy closed it' } satisfies StreamReport);
  }

  /** The connection of a stream reports. */
  upstream(stream: number, event: StreamReport): void {
    this.#sendUpstream.get(stream)?.(event);
  }

  /** The control plane accepts the connection and sends a response. */
  respond(stream: number): void {
    this.upstream(stream, { type: 'upstream.opened', credential: 'nothing' });
    this.upstream(stream, { type: 'upstream.responded' });
  }

  /** The state of a stream's actor; undefined: it has ended. */
  state(stream: number): unknown {
    const proxy = this.agent.getSnapshot().children['xds-proxy'] as Actor<typeof xdsProxyMachine>;
    return proxy.getSnapshot().children[`xds-stream-${stream}`]?.getSnapshot().value;
  }

  /** Streams that have an actor. */
  activeStreams(): number[] {
    return this.streams.map(({ stream }) => stream).filter((stream) => this.state(stream) !== undefined);
  }

  passTime(ms: number): void {
    this.clock.advance(ms);
  }
}
