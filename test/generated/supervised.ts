/** A supervisor with real epoch machines, up to the start of a machine that it invokes. */
import type { ActorRefFrom } from 'xstate';
import { epochMachine } from '../../machines/agent/envoy/epoch.machine.ts';
import { type EpochRecord, newestOf, servingOf } from '../../machines/agent/envoy/epoch-record.ts';
import { shutdownMachine } from '../../machines/agent/envoy/shutdown.machine.ts';
import type { SupervisorContext, SupervisorInput } from '../../machines/agent/envoy/supervisor.machine.ts';
import { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { type AgentSettings, defaultSettings } from '../../machines/agent/settings.ts';
import { eventually } from '../harness/eventually.ts';
import { beginOn, type EnvoyEnd, type Host, type HostKind } from './host.ts';
import { type Limit, pollWithin } from './limit.ts';
import { Company } from './session.ts';

/** A supervisor's machine whose epochs and shutdown have the effects of a host. */
export function supervisorWith(host: Host) {
  return supervisorMachine.provide({
    actors: {
      ...host.supervisorEffects,
      shutdown: shutdownMachine.provide({ actors: host.shutdownEffects }),
      epoch: epochMachine.provide({ actors: host.epochEffects }),
    },
  });
}

export class Supervised {
  readonly company: Company;
  readonly host: Host;
  readonly #limit: Limit;
  #digests = 0;

  private constructor(company: Company, host: Host, limit: Limit) {
    this.company = company;
    this.host = host;
    this.#limit = limit;
  }

  /** Begins a session with a supervisor on a new host. */
  static begin<Begun>(
    kind: HostKind,
    settings: Partial<AgentSettings>,
    startSession: (supervised: Supervised) => Promise<Begun>,
  ): Promise<Begun> {
    const plan = { bootstrap: 'good', spawns: true, live: true, takesRequests: true } as const;
    return beginOn(kind, plan, async (host) => {
      await host.prepare();
      const input: SupervisorInput = {
        baseIds: [...host.baseIds],
        settings: { ...defaultSettings, ...host.adminPorts, ...settings },
      };
      const company = new Company(supervisorWith(host), 'supervisor', input, ['status']);
      return startSession(new Supervised(company, host, kind.limit));
    });
  }

  get epochs(): readonly EpochRecord[] {
    return (this.company.machine.getSnapshot().context as SupervisorContext).epochs;
  }

  get newest(): EpochRecord | undefined {
    return newestOf(this.epochs);
  }

  get serving(): EpochRecord | undefined {
    return servingOf(this.epochs);
  }

  /** Starts the first Envoy. */
  begin(): void {
    this.company.machine.send({ type: 'supervisor.start' });
    this.changeConfiguration();
  }

  /** Sets the given configuration digest, or a new one. */
  changeConfiguration(digest = `digest-${++this.#digests}`): void {
    this.company.machine.send({ type: 'config.changed', digest, files: 1 });
  }

  /** Makes epoch 0 serve. */
  async serve(): Promise<void> {
    this.begin();
    await this.becomesLive('epoch-0');
  }

  /** Makes epoch 1 serve while epoch 0 drains. */
  async handOver(): Promise<void> {
    await this.serve();
    this.changeConfiguration();
    await this.becomesLive('epoch-1');
  }

  async becomesLive(name: string): Promise<void> {
    await this.initializes(name);
    await this.host.live(name);
    const live = () => this.epochs.find((epoch) => epoch.name === name && epoch.phase === 'live');
    await eventually(`${name} is live`, live, { everyMs: 8 });
  }

  /** Waits until the epoch has a process that is probed. */
  async initializes(name: string): Promise<void> {
    const { children } = this.company.machine.getSnapshot();
    const epoch = children[name] as ActorRefFrom<typeof epochMachine> | undefined;
    const isProbed = () => epoch?.getSnapshot().matches({ running: 'initializing' });
    await eventually(`${name} initializes`, isProbed, { everyMs: 8 });
  }

  /** Crashes the epoch and waits until the supervisor receives the exit. */
  async crash(name: string): Promise<void> {
    const [record] = this.epochs.filter((epoch) => epoch.name === name);
    await this.host.end(name, 'by a signal');
    await eventually(`the end of ${name}`, () => record === undefined || !this.epochs.includes(record), { everyMs: 8 });
  }

  /** Whether these processes exit in real time, while the machines' virtual time does not advance. */
  async haveExited(names: readonly string[], endKind: EnvoyEnd): Promise<boolean> {
    for (const name of names) if (this.host.running().includes(name)) await this.host.end(name, endKind);
    const haveExited = (): true | undefined =>
      names.some((name) => this.host.running().includes(name)) ? undefined : true;
    return (await pollWithin(this.#limit, haveExited)) ?? false;
  }
}
