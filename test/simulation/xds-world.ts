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
  readonly ends: { code: string; reason: string }[];
  /** Certificates sent over its connections, empty if unknown; each connection begins with the known one. */
  readonly certificates: string[];
  /** Health of the workload as reported to the control plane; undefined: unknown, at the start of a connection. */
  readonly healths: (boolean | undefined)[];
  readonly bundleResponses: { hash: string; refusal: string }[];
}

export interface XdsMachines {
  readonly proxy: typeof xdsProxyMachine;
  readonly stream: typeof xdsStreamMachine;
}

const ownMachines: XdsMachines = { proxy: xdsProxyMachine, stream: xdsStreamMachine };

export class XdsWorld {
  static readonly created: XdsWorld[] = [];
  readonly clock = new VirtualClock();
  readonly records: TraceRecord[] = [];
  readonly streams: ScriptedStream[] = [];
  /** Times at which the control plane was dialed. */
  readonly dials: number[] = [];
  /** The credentials presented in each dial. */
  readonly shown: string[] = [];
  /** Events to the agent. */
  readonly reports: AnyEventObject[] = [];
  /** Why the workload cannot serve; empty if it can. */
  workload: () => string | Promise<string> = () => '';
  /** Virtual times of probes. */
  readonly probes: number[] = [];
  /** Whether Envoy closes its stream after its end was sent. */
  envoysClose = true;
  failed: unknown;
  readonly agent: Actor<ReturnType<XdsWorld['machine']>>;
  #sendServer: (event: AnyEventObject) => void = () => {};
  readonly #upstreams = new Map<number, (event: AnyEventObject) => void>();
  readonly #downstreams = new Map<number, (event: AnyEventObject) => void>();

  constructor(
    input: XdsProxyInput = { socket: '/run/XDS', hasSecrets: true, probe: null, proxyless: false },
    machines: XdsMachines = ownMachines,
  ) {
    XdsWorld.created.push(this);
    const recorder = createRecorder({ program: 'pilot-agent', now: () => this.clock.now() });
    recorder.observe((record) => this.records.push(record));
    this.agent = startRoot(this.machine(machines, input), {
      id: 'agent',
      input: undefined,
      recorder,
      clock: this.clock as never,
      onError: (error) => {
        this.failed = error;
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
              this.probes.push(this.clock.now());
              return { reason: await this.workload() };
            }),
          },
        }),
        stream: stream.provide({
          actors: {
            downstream: fromCallback(({ input: { stream: n }, sendBack, receive }) => {
              this.#downstreams.set(n, sendBack);
              receive(({ code, reason }) => {
                this.of(n).ends.push({ code, reason });
                if (this.envoysClose) this.closes(n);
              });
              // A stream whose actor has stopped is closed.
              return () => {
                this.#downstreams.delete(n);
                this.of(n).downstream = false;
              };
            }),
            upstream: fromCallback(({ input: { stream: n, credential, certificate, health }, sendBack, receive }) => {
              this.shown.push(credential);
              this.#upstreams.set(n, sendBack);
              this.of(n).upstream = true;
              this.dials.push(this.clock.now());
              this.of(n).certificates.push(certificate);
              this.of(n).healths.push(health?.healthy);
              receive((order) => {
                if (order.type === 'certificate.report') this.of(n).certificates.push(order.serialNumber);
                else if (order.type === 'health.report') this.of(n).healths.push(order.healthy);
                else if (order.type === 'bundle.respond')
                  this.of(n).bundleResponses.push({ hash: order.hash, refusal: order.refusal });
              });
              return () => {
                this.#upstreams.delete(n);
                this.of(n).upstream = false;
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

  of(stream: number): ScriptedStream {
    const matchingStream = this.streams.find((one) => one.stream === stream);
    if (matchingStream === undefined) throw new Error(`no stream ${stream}`);
    return matchingStream;
  }

  start(): void {
    this.order({ type: 'xds.start' });
    this.#sendServer({ type: 'socket.listening', socket: '/run/XDS' });
  }

  order(event: AnyEventObject): void {
    // Events about secrets come from actors that are not part of this world.
    const proxy = this.agent.getSnapshot().children['xds-proxy'] as Actor<typeof xdsProxyMachine>;
    if (event.type === 'trust-bundle.served' || event.type === 'certificate.served') proxy.send(event as never);
    else this.agent.send({ type: 'order', event });
  }

  /** The socket cannot be opened. */
  refuseSocket(reason: string): void {
    this.order({ type: 'xds.start' });
    this.#sendServer({ type: 'socket.failed', reason });
  }

  /** An Envoy opens a stream. @returns its number */
  opens(envoy = '0@7', chance = 1): number {
    const stream = this.streams.length + 1;
    this.streams.push({
      stream,
      envoy,
      upstream: false,
      downstream: true,
      ends: [],
      certificates: [],
      healths: [],
      bundleResponses: [],
    });
    this.#sendServer({ type: 'downstream.opened', stream, envoy, protocol: 'delta', chance });
    return stream;
  }

  /** Envoy closes its end. */
  closes(stream: number): void {
    this.of(stream).downstream = false;
    this.#downstreams.get(stream)?.({ type: 'downstream.closed', reason: 'Envoy closed it' } satisfies StreamReport);
  }

  /** The connection of a stream reports. */
  upstream(stream: number, event: StreamReport): void {
    this.#upstreams.get(stream)?.(event);
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
  alive(): number[] {
    return this.streams.map(({ stream }) => stream).filter((stream) => this.state(stream) !== undefined);
  }

  pass(ms: number): void {
    this.clock.advance(ms);
  }
}
