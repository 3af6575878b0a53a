import type { ShardKey } from '../../model/services/endpoint-shards.ts';
import type { NetworkGateway } from '../../model/services/network-gateways.ts';
import type { RegistryDelta } from '../../model/services/registry-delta.ts';
import type { Steps } from '../../runtime/turns.ts';
import { AnyRegistry } from './any-registry.ts';
import { deliver, delivering } from './deliver.ts';
import type { XdsUpdater } from './registry.ts';

/** A registry that has services of its own, and hands their endpoints over as its shard. */
export abstract class ShardRegistry extends AnyRegistry {
  readonly provider: string;
  readonly clusterId: string;
  protected readonly updater: XdsUpdater;
  readonly #shard: ShardKey;

  constructor(shard: ShardKey, updater: XdsUpdater) {
    super();
    this.provider = shard.provider;
    this.clusterId = shard.cluster;
    this.#shard = shard;
    this.updater = updater;
  }

  networkGateways(): readonly NetworkGateway[] {
    return [];
  }

  protected deliver(delta: RegistryDelta): void {
    deliver(delta, this.#shard, this.updater, this.handlers);
  }

  /** The same in steps. */
  protected delivering(delta: RegistryDelta): Steps<void> {
    return delivering(delta, this.#shard, this.updater, this.handlers);
  }
}
