/** A control plane that reads a Consul's services, and the content of its pages. */
import type { DiscoveryFlags } from '../../src/discovery/options/discovery-flags.ts';
import type { Endpoint, Service } from '../../src/model/services/service.ts';
import { ControlPlane } from '../harness/control-plane.ts';
import type { ConsulServer } from './consul-server.ts';

export interface ConsulView {
  readonly registry: string;
  readonly condition: string;
  readonly reason: string;
  readonly strategy: string;
  readonly transport: string;
  readonly connections: number;
}

export const hostOf = (name: string): string => `${name}.service.consul`;

/** A control plane whose only registry is Consul, unless flags add others. */
export class ConsulPlane {
  readonly plane: ControlPlane;

  constructor(
    server: Pick<ConsulServer, 'url'>,
    flags: DiscoveryFlags = {},
    env: NodeJS.ProcessEnv = {},
    files: Record<string, string> = {},
  ) {
    this.plane = new ControlPlane(
      { registries: 'Consul', consulServerURL: server.url, ...flags },
      files,
      () => {},
      env,
    );
  }

  async services(): Promise<Map<string, Service>> {
    const services = (await this.plane.get('/debug/registryz')).json() as Service[];
    return new Map(services.map((service) => [service.hostname, service]));
  }

  async endpoints(name: string): Promise<readonly Endpoint[]> {
    const shards = (await this.plane.get('/debug/endpointz')).json() as Record<
      string,
      Record<string, { Shards: Record<string, Endpoint[]> }>
    >;
    return Object.values(shards[hostOf(name)]?.default?.Shards ?? {}).flat();
  }

  /** The page about the first datacenter. */
  async view(): Promise<ConsulView> {
    return (await this.views())[0]!;
  }

  async views(): Promise<readonly ConsulView[]> {
    return (await this.plane.get('/debug/consulz')).json() as ConsulView[];
  }

  async metrics(): Promise<string> {
    return (await this.plane.get('/metrics')).text;
  }

  /** Keys of pushed objects since the last call. */
  takePushed(): string[] {
    const from = this.#seen;
    this.#seen = this.plane.records.length;
    return this.plane.records
      .slice(from)
      .flatMap((record) =>
        record.kind === 'event' && record.event.type === 'push.request' ? (record.event.configs as string[]) : [],
      );
  }

  #seen = 0;
}

/** `ADDRESS WEIGHT HEALTH` of each endpoint of a service. */
export const healthOf = async (plane: ConsulPlane, name: string): Promise<string> =>
  (await plane.endpoints(name))
    .map(({ address, weight, health: healthState }) => `${address} ${weight} ${healthState}`)
    .join(', ');
